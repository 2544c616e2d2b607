import { ApiError } from '@gpuwhisk/common/errors';
import { nameLease, lifeSigns } from '@gpuwhisk/common/state/instance-ids';
import { ProcessRegistry } from '@gpuwhisk/common/state/process-registry';
import type { ProcessSort, RegisteredProcess } from '@gpuwhisk/common/state/process-registry';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import { EarlierActivations } from '../entitlement/in-flight.js';
import type { EarlierActivationsDependencies } from '../entitlement/in-flight.js';
import { takeOverQueue, takeOverUnplaced } from './queue-takeover.js';
import type { TakeoverCounts, TakeoverDependencies } from './queue-takeover.js';

/** How far a retirement is. */
export interface RetirementProgress extends TakeoverCounts {
  name: string;
  number: number;
  /** Nothing is left of it. */
  isSettled: boolean;
}

/** Dependencies of Retirements. */
export interface RetirementDependencies extends Omit<TakeoverDependencies, 'isClosing'> {
  state: ClusterState;
  inFlight: EarlierActivationsDependencies['inFlight'];
  /** How long an invoker has sent no ping, ms. */
  silenceMs: (invoker: number) => number;
  /** The controllers that are there, `controller<N>`. */
  controllers: () => ReadonlySet<string>;
}

/** A process that was heard of less long ago is alive, ms. */
const aliveMs = 10_000;
/** The name is kept for so long while the retirement is noted, ms: longer than the two requests to the store may take. */
const leaseMs = 90_000;
/** How long after its last sign of life a process may have begun something, ms: the gap between two signs, and the difference of clocks. */
const lastWordMs = 2500;

/** Retires processes that never come back: what they left is settled, and they begin nothing should they return. */
export class Retirements {
  /** By sort and number. */
  private readonly running = new Map<string, RetirementProgress>();
  /** By sort and name: one is answered at a time. */
  private readonly asked = new Map<string, Promise<RetirementProgress>>();
  private closing = false;

  constructor(private readonly dependencies: RetirementDependencies) {}

  close(): void {
    this.closing = true;
  }

  /**
   * Retires the process of this name, or goes on with that, and tells how far it is. Throws ApiError: 404 for a name that none
   * has, 409 where the process is alive or another controller is at it, 503 where the cluster's state cannot be asked.
   */
  retire(sort: ProcessSort, name: string): Promise<RetirementProgress> {
    const key = `${sort} ${name}`;
    const asked = this.asked.get(key) ?? this.answer(sort, name).finally(() => this.asked.delete(key));
    this.asked.set(key, asked);
    return asked;
  }

  private async answer(sort: ProcessSort, name: string): Promise<RetirementProgress> {
    const registry = new ProcessRegistry(this.dependencies.store, sort);
    const process = await this.find(registry, name);
    const known = this.running.get(`${sort} ${process.number}`);
    if (known !== undefined) return known;
    const progress = { name, number: process.number, moved: 0, stopped: 0, isSettled: false };
    if (process.retired?.isSettled) return { ...progress, isSettled: true };
    const silentSinceMs = process.retired?.silentSinceMs ?? (await this.end(registry, process));
    await this.begin(registry, process, silentSinceMs);
    this.running.set(`${sort} ${process.number}`, progress);
    void this.settle(registry, progress, silentSinceMs, process.retired !== undefined);
    return progress;
  }

  private async find(registry: ProcessRegistry, name: string): Promise<RegisteredProcess> {
    const named = (await registry.all()).filter((process) => process.name === name);
    // One that was retired before may have had the name, too.
    const found = named.find(({ retired }) => retired === undefined || !retired.isSettled) ?? named.at(-1);
    if (found === undefined) throw new ApiError(404, `There is no '${name}' among the ${registry.sort}.`);
    const by = found.retired?.takenOverBy;
    const { controllers, instance } = this.dependencies;
    if (by !== undefined && by !== instance && !found.retired?.isSettled && controllers().has(`controller${by}`)) {
      throw new ApiError(409, `controller${by} takes over what '${name}' left: ask that one, or wait.`);
    }
    return found;
  }

  /** Makes sure that the process is gone. Gives when it was last there. */
  private async end({ sort }: ProcessRegistry, { name, number }: RegisteredProcess): Promise<number> {
    const { state, clock, silenceMs, controllers, instance } = this.dependencies;
    const alive = (how: string): ApiError =>
      new ApiError(409, `'${name}' of the ${sort} is alive: ${how}. Stop it first.`);
    try {
      const nowMs = clock.now();
      const silent = sort === 'invokers' ? silenceMs(number) : Infinity;
      if (silent < aliveMs) throw alive(`it was heard ${Math.floor(silent / 1000)} s ago`);
      if (sort === 'controllers' && controllers().has(`controller${number}`)) throw alive('it serves');
      const signs = await state.rows(lifeSigns(sort));
      const lastMs = Math.max(Number(signs.get(name) ?? 0), nowMs - silent);
      if (nowMs - lastMs < aliveMs) throw alive(`it was there ${Math.floor((nowMs - lastMs) / 1000)} s ago`);
      const lease = await state.acquireLease(nameLease(sort, name), `retired by controller${instance}`, leaseMs);
      if (lease === undefined) throw alive('it has its name, or Redis has just been started');
      return lastMs + lastWordMs;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      throw new ApiError(503, 'Whether the process is alive is not known while Redis is away.');
    }
  }

  private async begin(
    registry: ProcessRegistry,
    { name, number }: RegisteredProcess,
    silentSinceMs: number,
  ): Promise<void> {
    const { instance, state, clock, logger } = this.dependencies;
    try {
      await registry.retire(number, { silentSinceMs, takenOverBy: instance, isSettled: false });
    } catch (error) {
      if (!(error instanceof DocumentConflictError)) throw error;
      throw new ApiError(409, `Another controller has begun to retire '${name}'.`);
    }
    logger.warn(
      { sort: registry.sort, name, number, silentForMs: clock.now() - silentSinceMs },
      'a process is retired',
    );
    await state.deleteRow(`instances ${registry.sort}`, name);
  }

  private async settle(
    registry: ProcessRegistry,
    progress: RetirementProgress,
    silentSinceMs: number,
    isResumed: boolean,
  ): Promise<void> {
    const { logger, instance } = this.dependencies;
    const { sort } = registry;
    const { number, name } = progress;
    const dependencies = { ...this.dependencies, isClosing: () => this.closing };
    try {
      let isEmpty = await takeOverQueue(dependencies, { sort, number, silentSinceMs, isResumed }, progress);
      if (sort === 'controllers' && isEmpty) {
        isEmpty = await takeOverUnplaced(dependencies, number, progress);
        await new EarlierActivations(this.dependencies).open(number);
      }
      if (!isEmpty) throw new Error('this controller closes');
      await registry.retire(number, { silentSinceMs, takenOverBy: instance, isSettled: true });
      progress.isSettled = true;
      logger.warn({ ...progress }, 'what a retired process left is settled');
    } catch (error) {
      logger.error({ sort, name, error: String(error) }, 'what a retired process left is not settled: retire it again');
      this.running.delete(`${sort} ${number}`);
    }
  }
}
