// Measurements of sets: runs that overlap all the time, and slowdowns of members put together.
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import { jobId } from './quota-row.js';
import type { QuotaJob } from './quotas.js';
import type { MeasuredPoint } from './surrogate.js';

/** A job that ran in a set. */
export interface SetMember {
  job: QuotaJob;
  /** Percent. */
  share: number;
}

/** What was measured of a whole set. */
interface SetMeasurement {
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
  add(gpu: GpuKind, members: readonly SetMember[], slowdown: number): SetMeasurement | undefined {
    const [measured] = members;
    if (measured === undefined) return undefined;
    const sorted = members
      .map((member) => ({ member, id: idOf(member) }))
      .sort((one, other) => (one.id < other.id ? -1 : Number(one.id > other.id)));
    const ids = sorted.map(({ id }) => id);
    const key = `${kindName(gpu)} ${ids.join(' ')}`;
    const set = this.pending.get(key) ?? { members: sorted.map(({ member }) => member), slowdowns: [] };
    this.pending.set(key, set);
    const own = idOf(measured);
    const places = ids.flatMap((id, at) => (id === own ? [at] : []));
    const place = places.find((at) => set.slowdowns[at] === undefined) ?? ids.indexOf(own);
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

/** When a run computed, ms on one clock. */
export interface RunInterval {
  startMs: number;
  endMs: number;
}

/** Part of a run, at least, that each of the others has to be there for. */
const leastCover = 0.8;

/** By member, those of its runs that every other member ran beside, but for the gaps between one run and the next. */
export function steadyRuns(runs: readonly (readonly RunInterval[])[]): RunInterval[][] {
  return runs.map((own, member) =>
    own.filter((run) => runs.every((others, other) => other === member || coverOf(run, others) >= leastCover)),
  );
}

/** The part of a run that others overlap, 0 to 1; 0 for one that took no time. */
function coverOf(run: RunInterval, others: readonly RunInterval[]): number {
  const tookMs = run.endMs - run.startMs;
  if (tookMs <= 0) return 0;
  let overlapMs = 0;
  for (const { startMs, endMs } of others) {
    overlapMs += Math.max(0, Math.min(run.endMs, endMs) - Math.max(run.startMs, startMs));
  }
  return overlapMs / tookMs;
}

/** Runs, and time of them, that a typical time is taken from: the clock of records ticks in whole milliseconds. */
const [leastRuns, leastTotalMs, enoughRuns] = [3, 150, 10];

/** Whether runs are enough to tell what is typical of them. */
export function isTelling(runs: readonly RunInterval[]): boolean {
  if (runs.length >= enoughRuns) return true;
  return runs.length >= leastRuns && runs.reduce((sum, run) => sum + run.endMs - run.startMs, 0) >= leastTotalMs;
}

/** The mean of the middle half of the times that runs took, ms. Throws RangeError for none. */
export function typicalMs(runs: readonly RunInterval[]): number {
  if (runs.length === 0) throw new RangeError('there is no run');
  const times = runs.map(({ startMs, endMs }) => endMs - startMs).sort((one, other) => one - other);
  const cut = times.length >> 2;
  const middle = times.slice(cut, times.length - cut);
  return middle.reduce((sum, time) => sum + time, 0) / middle.length;
}
