import type { DesiredShare, GpuDesired } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Container } from '../containers/container-factory.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { Geometry } from './geometry.js';
import type { GpuContainer, GpuContainers } from './gpu-containers.js';
import type { Ending, Healer } from './healer.js';
import type { TimeSlices } from './time-slices.js';

/** Dependencies of a DesiredState. */
export interface DesiredStateParts {
  gpuContainers: GpuContainers;
  enforcer: Pick<ShareEnforcer, 'adjusts'>;
  geometry: Pick<Geometry, 'set'>;
  timeSlices: Pick<TimeSlices, 'set'>;
  healer: Pick<Healer, 'end'>;
  /** Destroys a container. */
  end(container: Container): void;
  clock: Clock;
}

const nothing = { retire: {}, shares: {}, geometry: {} };

/** Brings the instances and devices of this node to their desired state. */
export class DesiredState {
  private desired: GpuDesired = { ...nothing, epoch: 0 };

  /** By container, the time at which its runs are stopped, monotonic ms. */
  private readonly stopMs = new Map<string, number>();

  constructor(private readonly parts: DesiredStateParts) {}

  /** Applies a new or removed row of this node. A row of an epoch before `epoch` changes nothing. */
  set(row: JsonValue | undefined, epoch: number): void {
    const desired = (row ?? { ...nothing, epoch }) as unknown as GpuDesired;
    if (desired.epoch < epoch) return;
    this.desired = desired;
    this.parts.geometry.set(desired.geometry);
    this.parts.timeSlices.set(desired.timeSlices ?? []);
    this.reconcile();
  }

  /** Ends idle instances that are to retire, or after their grace also busy ones, and sets the shares of the others. */
  reconcile(): void {
    const { gpuContainers, enforcer, healer, end } = this.parts;
    for (const [id, graceMs] of Object.entries(this.desired.retire)) {
      const one = gpuContainers.get(id);
      if (one === undefined || one.ending) continue;
      if (one.users.size === 0) {
        one.ending = true;
        end(one.container);
      } else if (graceMs !== null) {
        one.onRetire?.();
        one.onRetire = undefined;
        if (this.isOver(id, graceMs)) healer.end(one, preempted);
      }
    }
    if (!enforcer.adjusts) return;
    for (const [id, share] of Object.entries(this.desired.shares)) {
      const one = gpuContainers.get(id);
      if (one !== undefined) one.share = { ...one.share, ...within(one, share) };
    }
  }

  /** Whether the grace of a container that is to retire is over; the grace begins at the first call. */
  private isOver(container: string, graceMs: number): boolean {
    const { clock } = this.parts;
    const known = this.stopMs.get(container);
    if (known !== undefined) return clock.monotonicMs() >= known;
    for (const id of this.stopMs.keys()) if (this.parts.gpuContainers.get(id) === undefined) this.stopMs.delete(id);
    this.stopMs.set(container, clock.monotonicMs() + graceMs);
    clock.setBackgroundTimer(graceMs, () => this.reconcile());
    return graceMs === 0;
  }
}

/** The ending of a preempted instance; an idempotent action runs again elsewhere. */
const preempted: Ending = { text: 'The run gave way to more urgent work on its GPU.', byAction: false, again: true };

/** The share bounded so that request ≤ limit ≤ class. */
function within({ grant }: GpuContainer, { smRequest, smLimit }: DesiredShare): DesiredShare {
  const limit = Math.min(smLimit, grant.share.shareClass / 100);
  return { smLimit: limit, smRequest: Math.min(smRequest, limit) };
}
