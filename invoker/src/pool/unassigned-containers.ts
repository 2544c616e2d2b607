// Containers of the pool that belong to no action, and checks of their health.
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { problemOf } from '../containers/container-factory.js';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import { ExitWatch, ContainerRemovals } from './container-store.js';
import type { StoreServices, ContainerStore } from './container-store.js';
import { MemoryBudget } from './memory-budget.js';
import { Snapshots } from './snapshots.js';
import type { DeviceBudget } from './memory-budget.js';
import { StemCells } from './stem-cells.js';
import type { StemCellOptions } from './stem-cells.js';
import { UnloadedContainers, Unloading } from './unloaded-containers.js';
import type { Provenance } from './unloaded-containers.js';

/** The containers of a pool that belong to no action, and the memory budget of all containers. */
export class UnassignedContainers implements StoreServices {
  readonly memory: MemoryBudget;
  readonly removals: ContainerRemovals;
  readonly watch = new ExitWatch();
  readonly stemCells: StemCells;
  readonly snapshots: Snapshots;
  readonly unloaded: UnloadedContainers;
  readonly unloading: Unloading;
  private readonly checks: HealthChecks;

  constructor(
    factory: ContainerFactory,
    clock: Clock,
    options: StemCellOptions & { memoryMiB: number; devices?: DeviceBudget },
    logger: Logger,
    /** Called when memory has become free, or a container has become ready. */
    private readonly freed: () => void,
  ) {
    this.memory = new MemoryBudget(options.memoryMiB, options.devices, freed);
    this.removals = new ContainerRemovals(this.memory, logger);
    this.snapshots = new Snapshots(factory, clock, options.learnedMiB ?? Infinity, this, logger);
    this.stemCells = new StemCells(factory, clock, options, this, logger);
    this.unloaded = new UnloadedContainers(factory, clock, this);
    this.unloading = new Unloading(this.removals, logger);
    this.checks = new HealthChecks(clock, logger, [this.stemCells, this.unloaded]);
  }

  fits(container: Container, { memoryMiB }: ContainerSpec): boolean {
    const hadMiB = container.spec.memoryMiB;
    if (hadMiB === memoryMiB) return true;
    return this.memory.canChange(hadMiB, memoryMiB) && container.fits?.(memoryMiB) === true;
  }

  /** Gives a container that `fits` the memory limit of `wanted`, and changes its claim; false if that failed. */
  resize(container: Container, { memoryMiB }: ContainerSpec): boolean {
    const hadMiB = container.spec.memoryMiB;
    if (hadMiB === memoryMiB) return true;
    if (!this.memory.change(hadMiB, memoryMiB)) return false;
    if (container.resize?.(memoryMiB) === true) return true;
    this.memory.change(memoryMiB, hadMiB);
    return false;
  }

  get snapshotsMiB(): number {
    return this.snapshots.standingMiB;
  }

  added(): void {
    this.freed();
  }

  /**
   * A waiting container that serves an action of this provenance; passes to the caller with its memory. Undefined if there
   * is none.
   */
  take(provenance: Provenance, spec: ContainerSpec): Container | undefined {
    const loaded = this.takeLoaded(provenance, spec);
    if (loaded !== undefined) return loaded;
    const found = this.stemCells.takePart(spec) ?? this.unloaded.take(provenance, spec, 'subset');
    return found && this.sized(found, spec);
  }

  /** The container with the memory limit of `spec`; undefined, and it is destroyed, if it cannot have that. */
  private sized(container: Container, spec: ContainerSpec): Container | undefined {
    if (this.resize(container, spec)) return container;
    this.removals.remove(container);
    return undefined;
  }

  /** As `take`, with all wanted modules loaded. */
  takeLoaded(provenance: Provenance, spec: ContainerSpec): Container | undefined {
    const found =
      this.unloaded.take(provenance, spec, 'exact') ??
      this.unloaded.take(provenance, spec, 'superset') ??
      this.stemCells.take(spec);
    return found && this.sized(found, spec);
  }

  /** Containers that wait for a future action. */
  list(): Container[] {
    return [...this.stemCells.list(), ...this.unloaded.list()];
  }

  /** Destroys all containers; `removals` has settled when they have ended. */
  async close(): Promise<void> {
    this.checks.close();
    await Promise.all([this.stemCells.close(), this.snapshots.close()]);
    this.unloading.close();
    this.unloaded.close();
  }
}

const everyMs = 10_000;
const atOnce = 4;
const limits = { timeoutMs: 2000, logLimitBytes: 0, maxResultBytes: 1024, truncationBytes: 1024 };

/**
 * Checks every waiting container that can unload, a few at a time, every 10 s. A container that reports a problem or does
 * not answer within 2 s is replaced. An action may take a container during its check: the init follows the check.
 */
class HealthChecks {
  private underWay = false;
  private closing = false;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly stores: readonly ContainerStore[],
  ) {
    this.schedule();
  }

  close(): void {
    this.closing = true;
  }

  private schedule(): void {
    this.clock.setBackgroundTimer(everyMs, () => {
      if (this.closing) return;
      if (!this.underWay) void this.round();
      this.schedule();
    });
  }

  private async round(): Promise<void> {
    this.underWay = true;
    const entries = this.stores.flatMap((store) =>
      store
        .list()
        .filter(({ canUnload }) => canUnload)
        .map((container) => ({ store, container })),
    );
    const checkNext = async (): Promise<void> => {
      for (let entry = entries.shift(); entry !== undefined; entry = entries.shift()) {
        if (entry.store.has(entry.container)) await this.check(entry.store, entry.container);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, checkNext));
    this.underWay = false;
  }

  private async check(store: ContainerStore, container: Container): Promise<void> {
    const problem = await container.check(limits).outcome.then(problemOf, String);
    if (problem === undefined || this.closing || !store.has(container)) return;
    this.logger.warn(
      { container: container.id, kind: container.spec.kind, problem },
      'a container that waited for an action is faulty and is replaced',
    );
    store.replace(container);
  }
}
