import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { whoSets } from '@gpuwhisk/common/entities/limits';
import { tooManyInFlight, tooManyRequests, tooMuchStored } from '@gpuwhisk/common/errors';
import type { Metrics, ThrottleMetrics } from '@gpuwhisk/common/metrics';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Awaitable, ClusterState, Holds, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { throttleMetrics } from '@gpuwhisk/common/metrics';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import { inFlightHolds } from './in-flight.js';

/** OpenWhisk's window, a calendar minute. */
const windowMs = 60_000;
const MiB = 1024 * 1024;
/** How often an invocation retries at its namespace's limit of activations in flight. */
const landingLooks = 5;
const landingLookMs = 10;
/** Most invocations that wait at the limit; more are refused at once. */
const maxWaiting = 1000;

/** Dependencies of Throttles. */
export interface ThrottleDependencies {
  state: ClusterState;
  store: Pick<ArtifactStore, 'storedBytes'>;
  /** The limits for namespaces without their own. */
  limits: Config['limits'];
  clock: Clock;
  metrics: Metrics;
  /** Absent: no events are sent. */
  userEvents?: UserEvents;
}

/**
 * Decides by a namespace's limits whether it may invoke, fire and store now. Every request counts, whether admitted or not.
 * Counting in a remote state may reject; countsAtHand prevents that.
 */
export class Throttles {
  private readonly invocations: WindowCounters;
  private readonly fires: WindowCounters;
  private readonly inFlight: Holds;
  private readonly metrics: ThrottleMetrics;
  private waiting = 0;

  constructor(private readonly dependencies: ThrottleDependencies) {
    const { state, metrics } = dependencies;
    this.invocations = state.windowCounters('invocations', windowMs);
    this.fires = state.windowCounters('fires', windowMs);
    this.inFlight = inFlightHolds(state);
    this.metrics = throttleMetrics(metrics.registry);
  }

  /**
   * Counts one invocation (a sequence or composition is one) against the namespace of `identity`. Call after names are
   * checked and before entities are looked up. Waits up to 50 ms at the limit of activations in flight. Throws ApiError
   * (429), also as checkStored does. Admits synchronously with an embedded state.
   */
  admit(identity: Identity): Awaitable<void> {
    this.checkStored(identity);
    const key = identity.namespace.uuid;
    const count = this.invocations.add(key);
    if (typeof count !== 'number') return this.admitLater(identity, count, this.inFlight.count(key));
    this.checkInvocations(identity, count);
    const inFlight = this.inFlight.count(key);
    if (typeof inFlight !== 'number' || inFlight >= this.mostInFlight(identity)) {
      return this.admitToFlight(identity, inFlight);
    }
    this.tellInFlight(identity, inFlight);
  }

  /** Counts one fire of a trigger. Throws ApiError (429), also as checkStored does. */
  async admitFire(identity: Identity): Promise<void> {
    this.checkStored(identity);
    const count = await this.fires.add(identity.namespace.uuid);
    this.checkRate(identity, count, 'firesPerMinute');
  }

  /** Refuses what would store more for a namespace that has stored as much as it may. Throws ApiError (429). */
  checkStored(identity: Identity): void {
    const { store, limits } = this.dependencies;
    const { name } = identity.namespace;
    const allowedBytes = (identity.limits.storedMiB ?? limits.storedMiB) * MiB;
    const bytes = store.storedBytes(name);
    if (bytes === undefined || bytes < allowedBytes) return;
    this.metrics.stored(name);
    throw tooMuchStored(bytes, allowedBytes);
  }

  /** Both counts are requested at once, as each takes a round trip to the state. */
  private async admitLater(identity: Identity, counting: Promise<number>, inFlight: Awaitable<number>): Promise<void> {
    const [count, landing] = await Promise.all([counting, inFlight]);
    this.checkInvocations(identity, count);
    await this.admitToFlight(identity, landing);
  }

  /**
   * Waits a short time for other activations to end. Callers that are refused at once retry at once, and that load slows the
   * platform.
   */
  private async admitToFlight(identity: Identity, counting: Awaitable<number>): Promise<void> {
    const { clock } = this.dependencies;
    const allowed = this.mostInFlight(identity);
    let count = await counting;
    for (let looks = 1; count >= allowed; looks++) {
      if (looks > landingLooks || this.waiting >= maxWaiting) {
        this.metrics.concurrent(identity.namespace.name);
        this.dependencies.userEvents?.metric('ConcurrentRateLimit', 1, identity);
        throw tooManyInFlight(count, allowed, whoSets(identity.limits, 'concurrentInvocations'));
      }
      this.waiting++;
      await sleep(clock, landingLookMs);
      this.waiting--;
      count = await this.inFlight.count(identity.namespace.uuid);
    }
    this.tellInFlight(identity, count);
  }

  /** Sends an event about the limit; `count` excludes the activation that is being admitted. */
  private tellInFlight(identity: Identity, count: number): void {
    this.dependencies.userEvents?.metric('ConcurrentInvocations', count + 1, identity);
  }

  private mostInFlight({ limits }: Identity): number {
    return limits.concurrentInvocations ?? this.dependencies.limits.concurrentInvocations;
  }

  private checkInvocations(identity: Identity, count: number): void {
    this.checkRate(identity, count, 'invocationsPerMinute');
  }

  private checkRate(identity: Identity, count: number, name: 'firesPerMinute' | 'invocationsPerMinute'): void {
    const allowed = identity.limits[name] ?? this.dependencies.limits[name];
    if (count <= allowed) return;
    this.metrics.timed(identity.namespace.name);
    this.dependencies.userEvents?.metric('TimedRateLimit', 1, identity);
    throw tooManyRequests(count, allowed, whoSets(identity.limits, name));
  }
}
