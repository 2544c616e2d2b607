import { gpuSpendingCounters } from '@gpuwhisk/common/gpu';
import type { ClusterState, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuContainer } from './gpu-containers.js';

/** Counts each namespace's use of this node's GPUs, share times time, and tells the cluster. Samples are not charged. */
export class Spending {
  private readonly counters: WindowCounters;
  /** By busy container, monotonic ms up to which it is counted. */
  private readonly countedMs = new Map<string, number>();
  /** By namespace, ms of a whole GPU that the cluster is not told of yet. */
  private readonly due = new Map<string, number>();

  constructor(
    state: ClusterState,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
  ) {
    this.counters = gpuSpendingCounters(state);
  }

  /** A container has something to run; to be called again for more at once, or later. */
  began(container: string): void {
    if (!this.countedMs.has(container)) this.countedMs.set(container, this.clock.monotonicMs());
  }

  /** Counts what a container has had until now. */
  count(one: GpuContainer): void {
    const { container, grant, share, users, lastUser } = one;
    const sinceMs = this.countedMs.get(container.id);
    if (sinceMs === undefined) return;
    const nowMs = this.clock.monotonicMs();
    if (users.size > 0) this.countedMs.set(container.id, nowMs);
    else this.countedMs.delete(container.id);
    if (lastUser === undefined || lastUser.isSample === true) return;
    const spentMs = (nowMs - sinceMs) * share.smLimit * grant.devices.length;
    this.due.set(lastUser.namespace, (this.due.get(lastUser.namespace) ?? 0) + spentMs);
  }

  /** Counts what a container had that has ended, in the middle of a run or not. */
  left(one: GpuContainer): void {
    this.count(one);
    this.countedMs.delete(one.container.id);
  }

  /** Tells the cluster; what it cannot be told is told the next time. */
  async tell(containers: readonly GpuContainer[]): Promise<void> {
    const living = new Set(containers.map(({ container }) => container.id));
    for (const id of this.countedMs.keys()) if (!living.has(id)) this.countedMs.delete(id);
    for (const one of containers) this.count(one);
    for (const [namespace, ms] of [...this.due]) {
      this.due.delete(namespace);
      try {
        await this.counters.add(namespace, Math.round(ms));
      } catch {
        this.due.set(namespace, ms + (this.due.get(namespace) ?? 0)); // The state is away: its owner says so.
      }
    }
  }
}
