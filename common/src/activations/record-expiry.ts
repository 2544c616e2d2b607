import type { Logger } from '../logging.js';
import type { ClusterState, Lease } from '../state/cluster-state.js';
import type { ArtifactStore } from '../store/artifact-store.js';
import { sleep } from '../system/clock.js';
import type { Clock, Timer } from '../system/clock.js';
import { recordHorizon } from './record-horizon.js';

/** When records expire, and how often that is looked for, ms. */
export interface RecordExpiryTimes {
  /** From a record's end. */
  ttlMs: number;
  /** From the start to the first look: what an earlier process has left is settled by then. */
  firstMs: number;
  /** Between two looks. */
  everyMs: number;
}

/** What RecordExpiry works with. */
export interface RecordExpiryDependencies {
  store: ArtifactStore;
  clock: Clock;
  logger: Logger;
  /** So that one process of a cluster at a time removes records. */
  state: Pick<ClusterState, 'acquireLease' | 'renewLease' | 'releaseLease'>;
  /** This process, by a name that no other has. */
  holder: string;
  times: RecordExpiryTimes;
}

const leaseName = 'record-expiry';
const leaseMs = 120_000;
/** After each step the store is left to others for twice as long as the step took, and for so long at least, ms. */
const leastPauseMs = 20;

/**
 * Removes activation records that have expired, some at a time, in the background. The API shows none of those that still wait
 * (record-horizon.ts).
 */
export class RecordExpiry {
  /** Records that were removed since the start. */
  removed = 0;
  private timer: Timer | undefined;
  private closed = false;
  private pass: Promise<void> = Promise.resolve();
  private readonly horizonMs: () => number;

  constructor(private readonly dependencies: RecordExpiryDependencies) {
    const { clock, times } = dependencies;
    this.horizonMs = recordHorizon(clock, times.ttlMs);
  }

  /** Looks for expired records from now on. */
  open(): void {
    this.schedule(this.dependencies.times.firstMs);
  }

  /** Ends after the step that is under way. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.pass;
  }

  private schedule(delayMs: number): void {
    if (this.closed) return;
    this.timer = this.dependencies.clock.setBackgroundTimer(delayMs, () => {
      this.pass = this.look().finally(() => this.schedule(this.dependencies.times.everyMs));
    });
  }

  private async look(): Promise<void> {
    const { state, holder, logger } = this.dependencies;
    let lease: Lease | undefined;
    try {
      lease = await state.acquireLease(leaseName, holder, leaseMs);
      if (lease !== undefined) await this.removeExpired(lease);
    } catch (error) {
      logger.warn({ error: String(error) }, 'expired records could not be removed; it is tried again');
    } finally {
      if (lease !== undefined) {
        await state.releaseLease(lease).catch((error: unknown) => {
          logger.warn({ error: String(error) }, 'a lease could not be given back; it ends by itself');
        });
      }
    }
  }

  private async removeExpired(lease: Lease): Promise<void> {
    const { store, clock, state, logger } = this.dependencies;
    const before = this.removed;
    let stepMs = clock.monotonicMs();
    for await (const removed of store.expire(this.horizonMs())) {
      this.removed += removed;
      if (this.closed || !(await state.renewLease(lease, leaseMs))) break;
      await sleep(clock, Math.max(leastPauseMs, 2 * (clock.monotonicMs() - stepMs)));
      stepMs = clock.monotonicMs();
    }
    if (this.removed > before) logger.info({ records: this.removed - before }, 'expired records were removed');
  }
}
