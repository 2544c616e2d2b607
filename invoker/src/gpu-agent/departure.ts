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

/** Time before the end of the node at which runs are stopped, ms: for records, and for the return of idempotent runs. */
const marginMs = 5000;

const drained: Ending = { text: 'The node is being drained.', byAction: false };
const cutOff: Ending = {
  text: 'The node on which the action ran was taken away.',
  byAction: false,
  again: true,
};

/**
 * The announced end of this node. From the notice on its devices get no new work and idle instances end. Runs are asked to
 * end; those that go on are stopped 5 s before the node goes, or after half of a shorter notice. The time that is left is
 * counted from the notice by a clock that is never set.
 */
export class Departure {
  private notice: NodeNotice | undefined;
  private timer: Timer | undefined;
  private isDue = false;

  constructor(private readonly parts: DepartureParts) {}

  /** When the node will be taken away, epoch ms; undefined: no time was announced. */
  get leavesAt(): number | undefined {
    return this.notice?.leavesAt;
  }

  /** Follows a notice, or its withdrawal. */
  set(notice: NodeNotice | undefined): void {
    const { inventory, clock, logger } = this.parts;
    this.timer?.cancel();
    this.isDue = false;
    this.notice = notice;
    inventory.setLeaving(notice && `the node is ${notice.why === 'revoked' ? 'taken away' : 'given back'}`);
    logger.warn({ ...notice }, notice ? 'this node takes no more work: it leaves' : 'this node stays');
    if (notice?.leavesAt !== undefined) {
      const leftMs = Math.max(0, notice.leavesAt - clock.now());
      this.timer = clock.setBackgroundTimer(leftMs - Math.min(marginMs, leftMs / 2), () => {
        this.isDue = true;
        this.reconcile();
      });
    }
    this.reconcile();
  }

  /** Ends what is idle, and asks runs to end; called after each run and at each look. */
  reconcile(): void {
    if (this.notice === undefined) return;
    const { gpuContainers, healer } = this.parts;
    for (const one of gpuContainers.all()) {
      if (one.ending) continue;
      if (one.users.size === 0) healer.end(one, drained);
      else if (this.isDue) healer.end(one, cutOff);
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
