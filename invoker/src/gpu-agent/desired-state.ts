import type { DesiredShare, GpuDesired } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Container } from '../containers/container-factory.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { Geometry } from './geometry.js';
import type { GpuContainer, Residents } from './residents.js';

/** Dependencies of a DesiredState. */
export interface DesiredStateParts {
  residents: Residents;
  enforcer: Pick<ShareEnforcer, 'adjusts'>;
  geometry: Pick<Geometry, 'set'>;
  /** Destroys a container. */
  end(container: Container): void;
}

const nothing = { retire: [], shares: {}, geometry: {} };

/** Brings the instances and devices of this node to what the deciding controller wants of them, as far as they are there. */
export class DesiredState {
  private desired: GpuDesired = { ...nothing, epoch: 0 };

  constructor(private readonly parts: DesiredStateParts) {}

  /** The row of this node has come, or is gone. A row of an epoch before `epoch` changes nothing. */
  set(row: JsonValue | undefined, epoch: number): void {
    const desired = (row ?? { ...nothing, epoch }) as unknown as GpuDesired;
    if (desired.epoch < epoch) return;
    this.desired = desired;
    this.parts.geometry.set(desired.geometry);
    this.reconcile();
  }

  /** Ends instances that are to end and run nothing, and sets the shares of the others. */
  reconcile(): void {
    const { residents, enforcer, end } = this.parts;
    for (const id of this.desired.retire) {
      const one = residents.get(id);
      if (one === undefined || one.ending || one.users.size > 0) continue;
      one.ending = true;
      end(one.container);
    }
    if (!enforcer.adjusts) return;
    for (const [id, share] of Object.entries(this.desired.shares)) {
      const one = residents.get(id);
      if (one !== undefined) one.share = { ...one.share, ...within(one, share) };
    }
  }
}

/** Request ≤ limit ≤ class. */
function within({ grant }: GpuContainer, { smRequest, smLimit }: DesiredShare): DesiredShare {
  const limit = Math.min(smLimit, grant.share.shareClass / 100);
  return { smLimit: limit, smRequest: Math.min(smRequest, limit) };
}
