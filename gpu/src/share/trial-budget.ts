// What trials of sets may cost a place: work lost in them, as a part of the time that the place was busy.
import { keepNewest } from '@gpuwhisk/common/collections';

/** Part of a place's busy time that trials may lose, over the window; and the busy time that a new place is granted, ms. */
const [mostLost, grantedMs] = [0.02, 60_000];
/** Window, and the span of one of its buckets, ms. */
const [windowMs, bucketMs] = [600_000, 10_000];
/** Places that are told apart; the one that was busy last longest ago is forgotten. */
const maxPlaces = 20_000;

/** Sums of one span of time, ms. */
interface Bucket {
  /** Number of the span: its beginning divided by its length. */
  span: number;
  busyMs: number;
  /** By set; below 0: the place did more work than turns would have done. */
  lostMs: Record<string, number>;
}

/** State of the budgets, as plain data. */
export type SavedBudgets = readonly (readonly [string, readonly Bucket[]])[];

/** A budget that is spent. Times in ms. */
export interface SpentBudget {
  lostMs: number;
  busyMs: number;
  /** When a loss leaves the window, on the clock of the runs; busy time until then may free the budget earlier. */
  nextAt: number;
}

/** The budgets of places, by their id. */
export class TrialBudgets {
  private readonly places = new Map<string, Bucket[]>();

  /** A place was busy for `busyMs` until `at`; with `set` in a trial of it, in which `lostMs` of work were lost against turns. */
  ran(place: string, at: number, busyMs: number, set?: string, lostMs = 0): void {
    const buckets = this.places.get(place) ?? [];
    const span = Math.floor(at / bucketMs);
    let bucket = buckets.find((one) => one.span === span);
    if (bucket === undefined) {
      bucket = { span, busyMs: 0, lostMs: {} };
      buckets.push(bucket);
      // A clock that was set back leaves buckets of the future behind.
      const kept = buckets.filter((one) => one.span > span - windowMs / bucketMs && one.span <= span);
      buckets.splice(0, buckets.length, ...kept);
    }
    bucket.busyMs += busyMs;
    if (set !== undefined) bucket.lostMs[set] = (bucket.lostMs[set] ?? 0) + lostMs;
    keepNewest(this.places, place, buckets, maxPlaces);
  }

  /** Whether, and until when, trials have used up what they may cost on a place at `at`; undefined: a trial may go on. */
  spent(place: string, at: number): SpentBudget | undefined {
    const buckets = bucketsAt(this.places.get(place), at);
    const { lostMs, busyMs } = sumOf(buckets);
    if (lostMs <= mostLost * Math.max(grantedMs, busyMs)) return undefined;
    const oldest = buckets.find((bucket) => Object.values(bucket.lostMs).some((lost) => lost > 0));
    return { lostMs, busyMs, nextAt: ((oldest?.span ?? 0) + 1) * bucketMs + windowMs };
  }

  /** What trials have cost all places in the window before `at`, ms. */
  total(at: number): Pick<SpentBudget, 'lostMs' | 'busyMs'> {
    const sum = { lostMs: 0, busyMs: 0 };
    for (const buckets of this.places.values()) {
      const own = sumOf(bucketsAt(buckets, at));
      sum.lostMs += own.lostMs;
      sum.busyMs += own.busyMs;
    }
    return sum;
  }

  /** The state, for `restore`. */
  saved(): SavedBudgets {
    return structuredClone([...this.places]);
  }

  /** Takes the state of another one. */
  restore(saved: SavedBudgets): void {
    this.places.clear();
    for (const [place, buckets] of structuredClone(saved)) this.places.set(place, [...buckets]);
  }
}

function bucketsAt(buckets: readonly Bucket[] = [], at: number): Bucket[] {
  const first = Math.floor(at / bucketMs) - windowMs / bucketMs;
  return buckets.filter(({ span }) => span > first);
}

/** What one set has gained does not pay for what another one has lost. */
function sumOf(buckets: readonly Bucket[]): { lostMs: number; busyMs: number } {
  const bySet = new Map<string, number>();
  let busyMs = 0;
  for (const bucket of buckets) {
    busyMs += bucket.busyMs;
    for (const [set, lost] of Object.entries(bucket.lostMs)) bySet.set(set, (bySet.get(set) ?? 0) + lost);
  }
  let lostMs = 0;
  for (const lost of bySet.values()) lostMs += Math.max(0, lost);
  return { lostMs, busyMs };
}
