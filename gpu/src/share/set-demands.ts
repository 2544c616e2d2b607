// Sets that the quota table was asked for, and their stored form.
import { z } from 'zod';
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { ordered } from './quota-row.js';
import type { QuotaJob } from './quotas.js';

/** A set that was formed and whose shares have not been searched for. */
export interface WantedSet extends GpuKind {
  /** Its key in a table. */
  key: string;
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
  asked(set: readonly QuotaJob[], gpu: GpuKind, budgetsMs: readonly number[]): void {
    const { key } = ordered(set, gpu, budgetsMs);
    const before = this.sets.get(key);
    // The last one asked for is the last to go.
    this.sets.delete(key);
    const maxSlowdowns = set.map(({ soloMs = 0 }, at) => {
      const bound = soloMs > 0 ? (budgetsMs[at] ?? Infinity) / soloMs : Infinity;
      return bound >= leastSlowdown ? bound : Infinity;
    });
    const asked = (before?.asked ?? 0) + 1;
    const { gpuType, mode } = gpu;
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

/** A wanted set as JSON: no budget is null. */
export function encodeWantedSet({ maxSlowdowns, ...wanted }: WantedSet): string {
  return JSON.stringify({ ...wanted, maxSlowdowns: maxSlowdowns.map((bound) => (bound === Infinity ? null : bound)) });
}

const text = z.string();
const wantedSchema = z
  .looseObject({
    ...{ key: text, gpuType: text, mode: text, asked: z.int().nonnegative() },
    set: z.array(z.looseObject({ function: text, version: text, batch: z.number().min(1) })),
    maxSlowdowns: z.array(z.number().min(1).nullable()),
  })
  .refine(({ set, maxSlowdowns }) => set.length === maxSlowdowns.length);

/** Reads what `encodeWantedSet` gave: numbers that would spread are looked at. Throws RangeError. */
export function decodeWantedSet(stored: string): WantedSet {
  const { data } = wantedSchema.safeParse(JSON.parse(stored));
  if (data === undefined) throw new RangeError('this is no set that a search is wanted for');
  return { ...(data as unknown as WantedSet), maxSlowdowns: data.maxSlowdowns.map((bound) => bound ?? Infinity) };
}
