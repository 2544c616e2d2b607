import { departureMarginMs } from '@gpuwhisk/common/gpu-nodes';
import type { NodeNotice } from '@gpuwhisk/common/gpu-nodes';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { GpuContainers } from './gpu-containers.js';
import type { Ending, Healer } from './healer.js';
import type { Inventory } from './inventory.js';

/** Dependencies of Departure. */
export interface DepartureParts {
  inventory: Pick<Inventory, 'setLeaving'>;
  gpuContainers: GpuContainers;
  healer: Pick<Healer, 'end'>;
  clock: Clock;
  logger: Logger;
}

const drained: Ending = { text: 'The node is being drained.', byAction: false };
const cutOff: Ending = {
  text: 'The node on which the action ran was taken away.',
  byAction: false,
  again: true,
};

/**
 * The announced end of this node. From the notice on its devices take no new instances, and instances that are there take
 * runs whose time limit ends before work stops: 5 s before the node goes, or after half of a shorter notice. What still runs
 * or idles then ends. Without a time, idle instances end at once and runs when they are over. Training jobs are asked to
 * end at the notice. The time that is left is counted from the notice by a clock that is never set.
 */
export class Departure {
  private notice: NodeNotice | undefined;
  private timer: Timer | undefined;
  /** When work stops, monotonic ms; Infinity: no time was announced. */
  private stopMs = Infinity;

  constructor(private readonly parts: DepartureParts) {}

  /** When the node will be taken away, epoch ms; undefined: no time was announced. */
  get leavesAt(): number | undefined {
    return this.notice?.leavesAt;
  }

  /** Follows a notice, or its withdrawal. */
  set(notice: NodeNotice | undefined): void {
    const { inventory, clock, logger } = this.parts;
    this.timer?.cancel();
    this.notice = notice;
    this.stopMs = Infinity;
    logger.warn({ ...notice }, notice ? 'this node leaves' : 'this node stays');
    if (notice?.leavesAt !== undefined) {
      const leftMs = Math.max(0, notice.leavesAt - clock.now());
      const untilStopMs = leftMs - Math.min(departureMarginMs, leftMs / 2);
      this.stopMs = clock.monotonicMs() + untilStopMs;
      this.timer = clock.setBackgroundTimer(untilStopMs, () => this.reconcile());
    }
    inventory.setLeaving(
      notice && {
        why: `the node is ${notice.why === 'revoked' ? 'taken away' : 'given back'}`,
        longestRunMs: () => (notice.leavesAt === undefined ? 0 : Math.max(0, this.stopMs - clock.monotonicMs())),
      },
    );
    this.reconcile();
  }

  /** Ends what has to end, and asks training jobs to; called after each run and at each look. */
  reconcile(): void {
    if (this.notice === undefined) return;
    const { gpuContainers, healer, clock } = this.parts;
    const isDue = clock.monotonicMs() >= this.stopMs;
    const mayIdle = this.notice.leavesAt !== undefined && !isDue;
    for (const one of gpuContainers.all()) {
      if (one.ending || (mayIdle && one.users.size === 0)) continue;
      if (one.users.size === 0) healer.end(one, drained);
      else if (isDue) healer.end(one, cutOff);
      else if (this.notice.leavesAt !== undefined) {
        one.onRetire?.();
        one.onRetire = undefined;
      }
    }
  }

  close(): void {
    this.timer?.cancel();
  }
}
