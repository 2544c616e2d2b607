import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { whoSets } from '@gpuwhisk/common/entities/limits';
import { tooManyInFlight, tooManyGpuSeconds, tooManyGpusInFlight } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics, ThrottleMetrics } from '@gpuwhisk/common/metrics';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Awaitable, ClusterState, Holds, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { throttleMetrics } from '@gpuwhisk/common/metrics';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import { activationDocumentId } from '@gpuwhisk/common/entities/activation';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { gpuSpendingCounters } from '@gpuwhisk/common/gpu-nodes';

/** The holds of a namespace (by uuid): one for each activation in flight, named by activationToken. */
export function inFlightHolds(state: ClusterState): Holds {
  return state.holds('inFlight');
}

/** Whether an activation is in flight at some controller of the cluster. Rejects with StateUnavailableError. */
export async function isInFlight(
  state: ClusterState,
  { uuid, name }: Identity['namespace'],
  activationId: string,
): Promise<boolean> {
  const tokens = await inFlightHolds(state).tokens(uuid);
  return tokens.some((token) => token.startsWith(`${activationId} `) && token.endsWith(` ${name}`));
}

/** The token of an activation in flight: its id, its controller and its namespace. */
function activationToken(activationId: string, instance: number, namespace: string): string {
  return `${activationId} ${instance} ${namespace}`;
}

/** Dependencies of InFlight. */
interface InFlightDependencies {
  state: ClusterState;
  /** This controller's number; default 0. */
  instance?: number;
  /** The limits for namespaces without their own. */
  limits: Config['limits'];
  clock: Clock;
  metrics: Metrics;
  logger: Logger;
  /** Absent: no events are sent. */
  userEvents?: UserEvents;
}

/** An activation that begins. */
interface Beginning {
  activationId: string;
  /** The action's time limit, ms. */
  timeoutMs: number;
  /** Whether to enforce the namespace's limits, which do not apply to components of sequences. */
  bounded: boolean;
  /** Absent for CPU actions. */
  gpu?: GpuNeed | undefined;
}

interface Counted {
  /** The namespace's uuid. */
  key: string;
  token: string;
  /** When the activation's completion counts as lost, monotonic ms. */
  lostMs: number;
  gpu: Pick<GpuNeed, 'gpus' | 'memoryMiB'> | undefined;
}

/** An activation that a controller counted before a restart. */
interface EarlierActivation {
  activationId: string;
  /** The name of the activation's namespace. */
  namespace: string;
}

/** OpenWhisk's time after which a missing completion counts as lost, ms: `max(time limit, 60 s)` · 2 + 1 min. */
export function completionWaitMs(timeoutMs: number): number {
  return Math.max(timeoutMs, 60_000) * 2 + 60_000;
}

/** Interval of the search for lost completions, ms. */
const sweepMs = 10_000;

/** Counts the activations in flight of every namespace, from acceptance at this controller to completion. */
export class InFlight {
  private readonly holds: Holds;
  private readonly gpus: GpuInFlight;
  private readonly metrics: ThrottleMetrics;
  private readonly activations = new ShortLivedMap<string, Counted>();
  private sweepAtMs = 0;
  private readonly instance: number;

  constructor(private readonly dependencies: InFlightDependencies) {
    this.instance = dependencies.instance ?? 0;
    this.holds = inFlightHolds(dependencies.state);
    this.gpus = new GpuInFlight(dependencies.state, dependencies.limits);
    this.metrics = throttleMetrics(dependencies.metrics.registry);
  }

  /** Number of this controller's activations in flight. */
  get size(): number {
    return this.activations.size;
  }

  /**
   * Begins to count an activation. Throws ApiError (429), synchronously with an embedded state; the activation is then not
   * counted.
   */
  begin(identity: Identity, beginning: Beginning): Awaitable<void> {
    const { activationId, timeoutMs, gpu } = beginning;
    const nowMs = this.dependencies.clock.monotonicMs();
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    const key = identity.namespace.uuid;
    const waitMs = completionWaitMs(timeoutMs);
    const token = activationToken(activationId, this.instance, identity.namespace.name);
    this.activations.set(activationId, { key, token, lostMs: nowMs + waitMs, gpu });
    const count = this.holds.hold(key, token, waitMs);
    const use = gpu && this.gpus.hold(identity, activationId, gpu, waitMs);
    if (typeof count !== 'number' || use instanceof Promise) return this.beginLater(identity, beginning, count, use);
    this.check(identity, beginning, count, use);
  }

  /**
   * Ends the count of an activation that has completed or was not sent. Returns false if it is known to be a CPU activation.
   */
  end(activationId: string): boolean {
    const activation = this.activations.get(activationId);
    if (activation === undefined) return true;
    this.activations.delete(activationId);
    this.release(activationId, activation);
    return activation.gpu !== undefined;
  }

  /**
   * Takes over the count of activations that controller `instance` (default: this one) counted before its last start and did
   * not see complete. Rejects with StateUnavailableError.
   */
  async takeOver(instance = this.instance): Promise<EarlierActivation[]> {
    const [held, needs] = await Promise.all([this.holds.all(), this.gpus.needs()]);
    const nowMs = this.dependencies.clock.monotonicMs();
    const taken: EarlierActivation[] = [];
    for (const { key, token, leftMs } of held) {
      const [, activationId, owner, namespace] = /^(\S+) (\d+) (.*)$/.exec(token) ?? [];
      if (activationId === undefined || namespace === undefined || Number(owner) !== instance) continue;
      if (this.activations.has(activationId)) continue;
      this.activations.set(activationId, { key, token, lostMs: nowMs + leftMs, gpu: needs.get(activationId) });
      taken.push({ activationId, namespace });
    }
    return taken;
  }

  /** Whether this controller counts the activation as in flight. */
  has(activationId: string): boolean {
    return this.activations.has(activationId);
  }

  private async beginLater(
    identity: Identity,
    beginning: Beginning,
    counting: Awaitable<number>,
    using: Awaitable<GpuUse> | undefined,
  ): Promise<void> {
    const { activationId, gpu } = beginning;
    const counted = await Promise.all([counting, using]);
    // The activation may have completed meanwhile; its hold was then released before it began.
    if (!this.activations.has(activationId)) {
      const { uuid: key, name } = identity.namespace;
      this.release(activationId, { key, token: activationToken(activationId, this.instance, name), gpu });
    } else this.check(identity, beginning, ...counted);
  }

  private check(
    identity: Identity,
    { activationId, bounded }: Beginning,
    count: number,
    use: GpuUse | undefined,
  ): void {
    if (!bounded) return;
    const allowed = identity.limits.concurrentInvocations ?? this.dependencies.limits.concurrentInvocations;
    const problem: ApiError | undefined =
      count > allowed
        ? tooManyInFlight(count - 1, allowed, whoSets(identity.limits, 'concurrentInvocations'))
        : use && this.gpus.problem(identity, use);
    if (problem === undefined) return;
    this.end(activationId);
    this.metrics.concurrent(identity.namespace.name);
    this.dependencies.userEvents?.metric('ConcurrentRateLimit', 1, identity);
    throw problem;
  }

  private release(activationId: string, { key, token, gpu }: Omit<Counted, 'lostMs'>): void {
    // If the release fails, the holds expire.
    const failed = (error: unknown): void => {
      this.dependencies.logger.error({ error: String(error) }, 'a completed activation still counts as in flight');
    };
    this.holds.release(key, token)?.catch(failed);
    if (gpu !== undefined) this.gpus.release(key, activationId, gpu)?.catch(failed);
  }

  /** Forgets activations whose completion was lost. */
  private sweep(nowMs: number): void {
    this.sweepAtMs = nowMs + sweepMs;
    for (const [activationId, { lostMs }] of this.activations.entries()) {
      if (lostMs > nowMs) continue;
      this.end(activationId);
      this.metrics.forcedCompletion();
      this.dependencies.logger.warn({ activationId }, 'the completion of an activation is lost');
    }
  }
}

/** Dependencies of EarlierActivations. */
export interface EarlierActivationsDependencies {
  inFlight: Pick<InFlight, 'takeOver' | 'has' | 'end'>;
  store: Pick<ArtifactStore, 'get'>;
  clock: Clock;
  logger: Logger;
}

/** Number of records requested at once. */
const atOnce = 32;
/** Longest time that the start of a controller waits for records, ms. */
const startWaitMs = 5000;
/** Interval of the search for records, which may be stored late, ms: doubled after each search up to the longest. */
const firstLookMs = 2000;
const longestLookMs = 60_000;

/**
 * Activations that this controller counted before a restart. A completion message ends the count of those that complete
 * later. A stored record ends the count of those that completed during the restart.
 */
export class EarlierActivations {
  private left: EarlierActivation[] = [];
  private timer: Timer | undefined;
  private closed = false;

  constructor(private readonly dependencies: EarlierActivationsDependencies) {}

  /**
   * Takes over the activations of controller `instance` (default: this one). Resolves when those with a record are no longer
   * counted, after at most five seconds. The rest is searched for later, until each activation ends or its hold expires.
   * Call after completions are consumed.
   */
  async open(instance?: number): Promise<void> {
    const { inFlight, clock, logger } = this.dependencies;
    try {
      this.left = await inFlight.takeOver(instance);
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      logger.error(
        { error: error.message },
        'activations from before this start count as in flight until their holds expire',
      );
      return;
    }
    if (this.left.length === 0) return;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(startWaitMs, resolve);
      void this.look(firstLookMs).then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private async look(nextMs: number): Promise<void> {
    const { inFlight, clock } = this.dependencies;
    const waiting = this.left.values();
    const work = async (): Promise<void> => {
      for (const activation of waiting) {
        if (this.closed) return;
        if (inFlight.has(activation.activationId) && (await this.isRecorded(activation))) {
          inFlight.end(activation.activationId);
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    this.left = this.left.filter(({ activationId }) => inFlight.has(activationId));
    if (this.closed || this.left.length === 0) return;
    this.timer = clock.setBackgroundTimer(nextMs, () => void this.look(Math.min(longestLookMs, nextMs * 2)));
  }

  private async isRecorded({ activationId, namespace }: EarlierActivation): Promise<boolean> {
    try {
      await this.dependencies.store.get('activations', activationDocumentId(namespace, activationId));
      return true;
    } catch (error) {
      if (!(error instanceof NoDocumentError)) {
        this.dependencies.logger.warn(
          { activationId, error: String(error) },
          'a record could not be looked up; the look-up is repeated',
        );
      }
      return false;
    }
  }
}

/** The GPUs that a namespace's activations in flight ask for, and the GPU time that its activations have used. */
interface GpuUse {
  activations: number;
  gpus: number;
  memoryMiB: number;
  /** GPU time in the current minute, ms of whole GPUs; 0 without a limit on it. */
  spentMs: number;
}

/** A namespace's limit and its name. */
interface GpuLimit {
  name: 'concurrentGpuInvocations' | 'concurrentGpus' | 'concurrentGpuMemory';
  allowed: number | undefined;
  count: number;
}

/** Counts in the cluster's state the GPUs that each namespace's activations in flight ask for, and their GPU time. */
class GpuInFlight {
  private readonly holds: Holds;
  private readonly spending: WindowCounters;

  constructor(
    state: ClusterState,
    private readonly limits: Config['limits'],
  ) {
    this.holds = state.holds('gpuInFlight');
    this.spending = gpuSpendingCounters(state);
  }

  /** Counts an activation for at most `ttlMs`. Returns the use of its namespace including the activation. */
  hold(identity: Identity, activationId: string, need: GpuNeed, ttlMs: number): Awaitable<GpuUse> {
    const count = this.holds.hold(identity.namespace.uuid, tokenOf(activationId, need), ttlMs);
    return typeof count === 'number' ? this.use(identity) : count.then(() => this.use(identity));
  }

  /** The GPU need of each activation in flight, of all namespaces; without CPU activations. */
  async needs(): Promise<Map<string, Pick<GpuNeed, 'gpus' | 'memoryMiB'>>> {
    const needs = new Map<string, Pick<GpuNeed, 'gpus' | 'memoryMiB'>>();
    for (const { token } of await this.holds.all()) {
      const [activationId = '', gpus, memoryMiB] = token.split(' ');
      needs.set(activationId, { gpus: Number(gpus), memoryMiB: Number(memoryMiB) / Number(gpus) });
    }
    return needs;
  }

  release(key: string, activationId: string, need: Pick<GpuNeed, 'gpus' | 'memoryMiB'>): Awaitable<void> {
    return this.holds.release(key, tokenOf(activationId, need));
  }

  /** The error if the use exceeds a limit of the namespace; undefined if it does not. */
  problem(identity: Identity, { activations, gpus, memoryMiB, spentMs }: GpuUse): ApiError | undefined {
    const { limits } = this;
    const { limits: own } = identity;
    const seconds = this.secondsAllowed(identity);
    if (seconds !== undefined && spentMs >= seconds * 1000)
      return tooManyGpuSeconds(Math.floor(spentMs / 1000), seconds);
    const all: GpuLimit[] = [
      {
        name: 'concurrentGpuInvocations',
        allowed: own.concurrentGpuInvocations ?? limits.concurrentGpuInvocations,
        count: activations,
      },
      { name: 'concurrentGpus', allowed: own.concurrentGpus ?? limits.concurrentGpus, count: gpus },
      {
        name: 'concurrentGpuMemory',
        allowed: own.concurrentGpuMemory ?? limits.concurrentGpuMemoryMiB,
        count: memoryMiB,
      },
    ];
    const over = all.find(({ allowed, count }) => allowed !== undefined && count > allowed);
    return over?.allowed === undefined ? undefined : tooManyGpusInFlight(over.name, over.count, over.allowed);
  }

  private use(identity: Identity): Awaitable<GpuUse> {
    const { name, uuid } = identity.namespace;
    const tokens = this.holds.tokens(uuid);
    const spentMs = this.secondsAllowed(identity) === undefined ? 0 : this.spending.add(name, 0);
    if (!(tokens instanceof Promise) && typeof spentMs === 'number') return sum(tokens, spentMs);
    return Promise.all([tokens, spentMs]).then((both) => sum(...both));
  }

  private secondsAllowed({ limits }: Identity): number | undefined {
    return limits.gpuSecondsPerMinute ?? this.limits.gpuSecondsPerMinute;
  }
}

/** The token of a hold contains the amounts, so that the sum over tokens gives the use. */
function tokenOf(activationId: string, { gpus, memoryMiB }: Pick<GpuNeed, 'gpus' | 'memoryMiB'>): string {
  return `${activationId} ${gpus} ${gpus * memoryMiB}`;
}

function sum(tokens: readonly string[], spentMs: number): GpuUse {
  const use: GpuUse = { activations: tokens.length, gpus: 0, memoryMiB: 0, spentMs };
  for (const token of tokens) {
    const [, gpus, memoryMiB] = token.split(' ');
    use.gpus += Number(gpus);
    use.memoryMiB += Number(memoryMiB);
  }
  return use;
}
