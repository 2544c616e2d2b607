import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { tooManyInFlight, tooManyRequests } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { Awaitable, ClusterState, Holds, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import { throttleMetrics } from '@gpuwhisk/common/throttle-metrics';
import type { ThrottleMetrics } from '@gpuwhisk/common/throttle-metrics';
import { inFlightHolds } from './in-flight.js';

/** OpenWhisk's windows: calendar minutes. */
const windowMs = 60_000;

/** What throttles are made of. */
export interface ThrottleDependencies {
  state: ClusterState;
  /** The limits of namespaces that have none of their own. */
  limits: Config['limits'];
  metrics: Metrics;
  logger: Logger;
}

/**
 * Says who may invoke and fire now, by the limits of the namespace. A request is counted where it is asked about,
 * whether it is let in or not. Where the cluster's state cannot be reached everything is let in: the bounds of the
 * queue still hold.
 */
export class Throttles {
  private readonly invocations: WindowCounters;
  private readonly fires: WindowCounters;
  private readonly inFlight: Holds;
  private readonly metrics: ThrottleMetrics;

  constructor(private readonly dependencies: ThrottleDependencies) {
    const { state, metrics } = dependencies;
    this.invocations = state.windowCounters('invocations', windowMs);
    this.fires = state.windowCounters('fires', windowMs);
    this.inFlight = inFlightHolds(state);
    this.metrics = throttleMetrics(metrics.registry);
  }

  /**
   * Counts one invocation (a sequence or composition is one) against the namespace of `identity`. To be called once
   * names were checked and before anything is looked up. Throws ApiError (429), at once where the state is embedded.
   */
  admit(identity: Identity): Awaitable<void> {
    const key = identity.namespace.uuid;
    const count = this.invocations.add(key);
    if (typeof count !== 'number') return this.admitLater(identity, count);
    this.checkInvocations(identity, count);
    const inFlight = this.inFlight.count(key);
    if (typeof inFlight !== 'number') return this.checkInFlightLater(identity, inFlight);
    this.checkInFlight(identity, inFlight);
  }

  /** Counts one fire of a trigger. Throws ApiError (429). */
  async admitFire(identity: Identity): Promise<void> {
    const count = await this.known(this.fires.add(identity.namespace.uuid));
    const allowed = identity.limits.firesPerMinute ?? this.dependencies.limits.firesPerMinute;
    if (count !== undefined) this.checkRate(identity, count, allowed);
  }

  private async admitLater(identity: Identity, counting: Promise<number>): Promise<void> {
    const count = await this.known(counting);
    if (count !== undefined) this.checkInvocations(identity, count);
    await this.checkInFlightLater(identity, this.inFlight.count(identity.namespace.uuid));
  }

  private async checkInFlightLater(identity: Identity, counting: Awaitable<number>): Promise<void> {
    const count = await this.known(counting);
    if (count !== undefined) this.checkInFlight(identity, count);
  }

  /** What the state says; undefined where it cannot be reached. */
  private async known(counting: Awaitable<number>): Promise<number | undefined> {
    try {
      return await counting;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      this.dependencies.logger.error({ error: error.message }, 'a request was let in without a throttle');
      return undefined;
    }
  }

  private checkInvocations(identity: Identity, count: number): void {
    this.checkRate(
      identity,
      count,
      identity.limits.invocationsPerMinute ?? this.dependencies.limits.invocationsPerMinute,
    );
  }

  private checkRate({ namespace }: Identity, count: number, allowed: number): void {
    if (count <= allowed) return;
    this.metrics.timed(namespace.name);
    throw tooManyRequests(count, allowed);
  }

  private checkInFlight({ namespace, limits }: Identity, count: number): void {
    const allowed = limits.concurrentInvocations ?? this.dependencies.limits.concurrentInvocations;
    if (count < allowed) return;
    this.metrics.concurrent(namespace.name);
    throw tooManyInFlight(count, allowed);
  }
}
