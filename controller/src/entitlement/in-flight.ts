import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { tooManyInFlight } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { Awaitable, ClusterState, Holds } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { throttleMetrics } from '@gpuwhisk/common/throttle-metrics';
import type { ThrottleMetrics } from '@gpuwhisk/common/throttle-metrics';

/** The holds of a namespace (its uuid): the ids of its activations in flight. */
export function inFlightHolds(state: ClusterState): Holds {
  return state.holds('inFlight');
}

/** What counts activations in flight. */
export interface InFlightDependencies {
  state: ClusterState;
  /** The limits of namespaces that have none of their own. */
  limits: Config['limits'];
  clock: Clock;
  metrics: Metrics;
  logger: Logger;
}

/** OpenWhisk's rule of when a completion that has not come never will: `max(time limit, 60 s)` · 2 + 1 min. */
export function completionWaitMs(timeoutMs: number): number {
  return Math.max(timeoutMs, 60_000) * 2 + 60_000;
}

/** How often lost completions are looked for, ms. */
const sweepMs = 10_000;

/** Counts the activations in flight of every namespace, from their acceptance here to their completion. */
export class InFlight {
  private readonly holds: Holds;
  private readonly metrics: ThrottleMetrics;
  /** Whose each activation in flight is, and when its completion counts as lost, monotonic ms. */
  private readonly activations = new Map<string, { key: string; lostMs: number }>();
  private sweepAtMs = 0;

  constructor(private readonly dependencies: InFlightDependencies) {
    this.holds = inFlightHolds(dependencies.state);
    this.metrics = throttleMetrics(dependencies.metrics.registry);
  }

  /** Activations of this controller in flight. */
  get size(): number {
    return this.activations.size;
  }

  /**
   * Counts an activation from now on. `bounded`: refuse it beyond the namespace's limit (parts of sequences are not).
   * Throws ApiError (429), at once where the state is embedded; it is not counted then.
   */
  begin(identity: Identity, activationId: string, timeoutMs: number, bounded: boolean): Awaitable<void> {
    const nowMs = this.dependencies.clock.monotonicMs();
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    const key = identity.namespace.uuid;
    const waitMs = completionWaitMs(timeoutMs);
    this.activations.set(activationId, { key, lostMs: nowMs + waitMs });
    const count = this.holds.hold(key, activationId, waitMs);
    if (typeof count !== 'number') return this.beginLater(identity, activationId, count, bounded);
    if (bounded) this.check(identity, activationId, count);
  }

  /** The activation has completed, or was not sent after all. */
  end(activationId: string): void {
    const activation = this.activations.get(activationId);
    if (activation === undefined) return;
    this.activations.delete(activationId);
    this.release(activation.key, activationId);
  }

  private async beginLater(
    identity: Identity,
    activationId: string,
    counting: Promise<number>,
    bounded: boolean,
  ): Promise<void> {
    let count: number;
    try {
      count = await counting;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      this.dependencies.logger.error({ error: error.message }, 'an activation in flight was not counted');
      return;
    }
    // It may have completed by then: its hold was asked to end before it began.
    if (!this.activations.has(activationId)) this.release(identity.namespace.uuid, activationId);
    else if (bounded) this.check(identity, activationId, count);
  }

  private check({ namespace, limits }: Identity, activationId: string, count: number): void {
    const allowed = limits.concurrentInvocations ?? this.dependencies.limits.concurrentInvocations;
    if (count <= allowed) return;
    this.end(activationId);
    this.metrics.concurrent(namespace.name);
    throw tooManyInFlight(count - 1, allowed);
  }

  private release(key: string, activationId: string): void {
    const released = this.holds.release(key, activationId);
    // Where it fails the hold ends by itself.
    released?.catch((error: unknown) => {
      this.dependencies.logger.error({ error: String(error) }, 'a completed activation still counts as in flight');
    });
  }

  /** Forgets activations whose completion was lost. */
  private sweep(nowMs: number): void {
    this.sweepAtMs = nowMs + sweepMs;
    for (const [activationId, { lostMs }] of this.activations) {
      if (lostMs > nowMs) continue;
      this.end(activationId);
      this.metrics.forcedCompletion();
      this.dependencies.logger.warn({ activationId }, 'the completion of an activation did not come');
    }
  }
}
