// A lease that one process of the cluster holds, and the work of the holder.
import type { Logger } from '@gpuwhisk/common/logging';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { ClusterState, Lease } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** The lease of the controller that decides about GPUs. */
export const gpuLeaseName = 'gpu-scheduler';

/** Duration of a lease, and interval of renewals and attempts, ms. */
interface LeaseTimes {
  ttlMs: number;
  renewMs: number;
}

/** Says whether this process may hold a lease. Both reject with StateUnavailableError; the lease is not renewed then. */
export interface LeaseGate {
  /** Called before each attempt to get the lease; false: this process leaves it to others. */
  mayTake(): Promise<boolean>;
  /** Called whenever this process has got or renewed the lease. */
  taken(): Promise<void>;
}

/** Holds a lease, or tries to get one that another process holds. */
export class LeaseKeeper {
  private lease: Lease | undefined;
  /** Until when this process certainly holds the lease, monotonic ms. */
  private untilMs = 0;
  private timer: Timer | undefined;
  private closed = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly state: ClusterState,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly name: string,
    private readonly holder: string,
    private readonly times: LeaseTimes,
    private readonly gate?: LeaseGate,
  ) {}

  /** Calls `listener`, which must not throw, after each attempt to get or renew the lease. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** The lease's epoch; undefined unless this process certainly holds the lease. */
  get epoch(): number | undefined {
    return this.clock.monotonicMs() < this.untilMs ? this.lease?.epoch : undefined;
  }

  /** Makes the first attempt to get the lease and schedules further ones. */
  async open(): Promise<void> {
    await this.renew();
    if (this.closed) return;
    for (const listener of this.listeners) listener();
    this.timer = this.clock.setBackgroundTimer(this.times.renewMs, () => void this.open());
  }

  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    this.untilMs = 0;
    if (this.lease !== undefined) await this.state.releaseLease(this.lease);
  }

  private async renew(): Promise<void> {
    const { ttlMs } = this.times;
    // The lease may have been granted as early as the time of the request.
    const askedMs = this.clock.monotonicMs();
    try {
      if (this.lease === undefined || !(await this.state.renewLease(this.lease, ttlMs))) {
        const mayTake = this.gate === undefined || (await this.gate.mayTake());
        this.lease = mayTake ? await this.state.acquireLease(this.name, this.holder, ttlMs) : undefined;
      }
      if (this.lease !== undefined) await this.gate?.taken();
      this.untilMs = this.lease === undefined ? 0 : askedMs + ttlMs;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      this.logger.error({ lease: this.name, error: error.message }, 'a lease could not be renewed');
    }
  }
}

/** Work of the leader: the controller that decides about GPUs. */
interface LeaderWork {
  /** Called when this controller becomes the leader. A rejection is logged. */
  begin(): Promise<void>;
  /** Called when this controller is the leader no longer. A rejection is logged. */
  end(): Promise<void>;
}

/** Calls `work.begin` and `work.end`, one after the other, whenever this controller gets or loses the lease. */
export function whileLeader(lease: Pick<LeaseKeeper, 'epoch' | 'onChange'>, logger: Logger, work: LeaderWork): void {
  let isLeading = false;
  let last: Promise<void> = Promise.resolve();
  const follow = (): void => {
    const leads = lease.epoch !== undefined;
    if (leads === isLeading) return;
    isLeading = leads;
    last = last
      .then(() => (leads ? work.begin() : work.end()))
      .catch((error: unknown) => logger.error({ error: String(error) }, 'the leader failed to begin or end its work'));
  };
  lease.onChange(follow);
  follow();
}
