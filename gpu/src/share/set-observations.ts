import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { jobId, placeKey } from './quota-key.js';
import type { QuotaJob } from './quotas.js';
import type { MeasuredPoint } from './surrogate.js';

/** A job that ran in a set. */
export interface SetMember {
  job: QuotaJob;
  /** Percent. */
  share: number;
}

/** What was measured of a whole set. */
export interface SetMeasurement {
  set: QuotaJob[];
  point: MeasuredPoint;
}

interface Pending {
  members: readonly SetMember[];
  slowdowns: (number | undefined)[];
}

/** Sets of which not all members have been measured yet; of more, the one that was begun first is forgotten. */
const maxPending = 1000;

/** Puts together what runs that end one after the other tell of the set that they ran in. */
export class SetObservations {
  private readonly pending = new Map<string, Pending>();

  /**
   * The first of `members` ran with the others beside it and was so much slower than alone. Gives the measurement of the
   * whole set once each of it has been measured with these shares.
   */
  add(gpuType: string, mode: DeviceMode, members: readonly SetMember[], slowdown: number): SetMeasurement | undefined {
    const [measured] = members;
    if (measured === undefined) return undefined;
    const sorted = members
      .map((member) => ({ member, id: idOf(member) }))
      .sort((one, other) => (one.id < other.id ? -1 : Number(one.id > other.id)));
    const ids = sorted.map(({ id }) => id);
    const key = `${placeKey(gpuType, mode)} ${ids.join(' ')}`;
    const set = this.pending.get(key) ?? { members: sorted.map(({ member }) => member), slowdowns: [] };
    this.pending.set(key, set);
    const own = idOf(measured);
    const places = ids.flatMap((id, at) => (id === own ? [at] : []));
    const place = places.find((at) => set.slowdowns[at] === undefined) ?? places[0]!;
    set.slowdowns[place] = slowdown;
    const slowdowns = ids.flatMap((_, at) => set.slowdowns[at] ?? []);
    if (slowdowns.length < ids.length) {
      this.trim();
      return undefined;
    }
    this.pending.delete(key);
    return {
      set: set.members.map(({ job }) => job),
      point: { shares: set.members.map(({ share }) => share), slowdowns },
    };
  }

  private trim(): void {
    const [first] = this.pending.keys();
    if (this.pending.size > maxPending && first !== undefined) this.pending.delete(first);
  }
}

const idOf = ({ job, share }: SetMember): string => `${jobId(job)}:${share}`;
