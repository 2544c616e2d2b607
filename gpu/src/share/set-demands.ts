// Sets that the quota table was asked for, and their stored form.
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { ordered } from './quota-row.js';
import type { QuotaJob } from './quotas.js';

/** A set that was formed and whose shares have not been searched for. */
export interface WantedSet {
  /** Its key in a table. */
  key: string;
  gpuType: string;
  mode: DeviceMode;
  set: readonly QuotaJob[];
  /** By job, what its budget allowed when it was asked for last; Infinity where it had none, or none that can be kept. */
  maxSlowdowns: readonly number[];
  /** How often it was asked for. */
  asked: number;
}

/** Sets that are remembered; of more, the one goes that was not asked for for longest. */
const maxSets = 1000;
/** A budget that leaves less than this cannot be kept beside other jobs. */
const leastSlowdown = 1.05;

/** Count from which a set is stored for later processes; most sets are formed once. */
const leastTold = 2;
/** Greater counts are told when they have doubled: what a crash forgets of them makes no difference. */
const mostTold = 8;

/** Counts how often sets are asked for. */
export class SetDemands {
  private readonly sets = new Map<string, WantedSet>();

  /** `onChange`: a set is to be remembered with this count, or to be forgotten; not told of every count. */
  constructor(private readonly onChange: (key: string, wanted: WantedSet | undefined) => void = () => undefined) {}

  /** A set was formed; `budgetsMs` as Quotas.shareFor has them. */
  asked(set: readonly QuotaJob[], gpuType: string, mode: DeviceMode, budgetsMs: readonly number[]): void {
    const { key } = ordered(set, gpuType, mode, budgetsMs);
    const before = this.sets.get(key);
    // The last one asked for is the last to go.
    this.sets.delete(key);
    const maxSlowdowns = set.map(({ soloMs = 0 }, at) => {
      const bound = soloMs > 0 ? (budgetsMs[at] ?? Infinity) / soloMs : Infinity;
      return bound >= leastSlowdown ? bound : Infinity;
    });
    const asked = (before?.asked ?? 0) + 1;
    const wanted = { key, gpuType, mode, set: [...set], maxSlowdowns, asked };
    this.insert(wanted);
    if (asked >= leastTold && (asked <= mostTold || Number.isInteger(Math.log2(asked)))) this.onChange(key, wanted);
  }

  /** Restores a stored set, also repeatedly; of two counts the greater stands. */
  restore(earlier: WantedSet): void {
    const since = this.sets.get(earlier.key);
    this.insert(since === undefined ? earlier : { ...since, asked: Math.max(earlier.asked, since.asked) });
  }

  /** The one asked for most first. */
  list(): WantedSet[] {
    return [...this.sets.values()].sort((one, other) => other.asked - one.asked);
  }

  /** Restarts the count of a set at 0. */
  restart(key: string): void {
    const known = this.sets.get(key);
    if (known === undefined) return;
    this.sets.set(key, { ...known, asked: 0 });
    if (known.asked >= leastTold) this.onChange(key, undefined);
  }

  forget(key: string): void {
    const known = this.sets.get(key);
    if (this.sets.delete(key) && known !== undefined && known.asked >= leastTold) this.onChange(key, undefined);
  }

  private insert(wanted: WantedSet): void {
    this.sets.set(wanted.key, wanted);
    const [oldest] = this.sets.keys();
    if (this.sets.size > maxSets && oldest !== undefined) this.forget(oldest);
  }
}

/** Thrown for what is no wanted set. */
export class WantedSetError extends Error {
  override name = 'WantedSetError';
}

/** A wanted set as JSON: no budget is null. */
export function encodeWantedSet({ maxSlowdowns, ...wanted }: WantedSet): string {
  return JSON.stringify({ ...wanted, maxSlowdowns: maxSlowdowns.map((bound) => (bound === Infinity ? null : bound)) });
}

/** Reads what `encodeWantedSet` gave: numbers that would spread are looked at. Throws WantedSetError. */
export function decodeWantedSet(text: string): WantedSet {
  const wanted = JSON.parse(text) as (WantedSet & { maxSlowdowns: (number | null)[] }) | null;
  const isSound =
    typeof wanted === 'object' &&
    wanted !== null &&
    [wanted.key, wanted.gpuType, wanted.mode].every((one) => typeof one === 'string') &&
    Number.isSafeInteger(wanted.asked) &&
    wanted.asked >= 0 &&
    Array.isArray(wanted.set) &&
    wanted.set.every((job) => typeof job.function === 'string' && typeof job.version === 'string' && job.batch >= 1) &&
    Array.isArray(wanted.maxSlowdowns) &&
    wanted.maxSlowdowns.length === wanted.set.length &&
    wanted.maxSlowdowns.every((bound) => bound === null || bound >= 1);
  if (!isSound) throw new WantedSetError('this is no set that a search is wanted for');
  return { ...wanted, maxSlowdowns: wanted.maxSlowdowns.map((bound) => bound ?? Infinity) };
}
