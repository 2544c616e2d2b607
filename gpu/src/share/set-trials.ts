// Trials of sets of best-effort functions that share a place: what all lose together, and whether a set stays or is split.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- a set has ratios for each of its members' ids */
import { keepNewest } from '@gpuwhisk/common/collections';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { ObservedRun } from '../view/decision.js';
import { bucketOf } from '../view/input-size.js';
import { classAtOrAbove } from '../view/shares.js';
import type { Task } from '../view/view.js';
import { jobId } from './quota-row.js';
import { jobOf } from './quotas.js';
import { gainOf, meanOf } from './set-statistics.js';
import type { SetGain } from './set-statistics.js';
import { TrialBudgets } from './trial-budget.js';
import type { SavedBudgets, SpentBudget } from './trial-budget.js';

/** A task with its share, fraction of the GPU. */
export interface Sharer {
  task: Task;
  share: number;
}

/** A run that has ended. */
export interface TrialRun extends ObservedRun {
  /** Neither injected nor started cold; absent: it was warm. */
  isWarm?: boolean;
  /** Something else than its neighbours may have changed its time; absent: nothing has. */
  isDisturbed?: boolean;
}

/**
 * Where a set stands: nothing is measured of it, it is measured, it gains and may run, or it does not and is kept apart.
 */
export type SetState = 'untried' | 'trying' | 'stays' | 'split';

/** What is known of a set. */
export interface SetStanding {
  state: SetState;
  /** Measured runs of its members until it was decided. */
  runs: number;
  /** Σ(alone / together), with its one-sided 95 % ends; absent: too few runs of one of its members. */
  gain?: SetGain;
  /** How many times longer than alone each member takes, in the order asked; absent as `gain` is. */
  slowdowns?: readonly number[];
  /** Until when it is kept apart, epoch ms; absent: it is not. */
  until?: number;
}

/** A set as it is stored. Times in epoch ms. */
export interface TriedSet extends GpuKind {
  /** Ids of its members, sorted; an id stands once for each instance. */
  members: readonly string[];
  /** Functions of the members, `/namespace/action`, in their order. */
  functions: readonly string[];
  /** Figures of the members, in their order; absent: not all are known. */
  features?: readonly WorkloadFeatures[];
  /** By id, times alone / times together of the last runs. */
  ratios: Record<string, number[]>;
  runs: number;
  state: Exclude<SetState, 'untried'>;
  /** When it was split; absent: it is not. */
  splitAt?: number;
  driverMajor: number;
}

/** Runs under overlap before a set may stay, after which it is split if it does not gain, and after which its mean decides. */
const [leastRuns, enoughRuns, mostRuns] = [5, 10, 30];
/** Least Σ(alone / together) of a set; and of three, as a multiple of the best two of them. */
const [leastGain, gainOverPair] = [1.1, 1.05];
/** Σ of the two that run from which on a third is tried. */
const thirdFrom = 1.7;
/** How long a split set is remembered, ms. */
const splitMs = 24 * 3_600_000;
/** Runs of a member that count; and what a ratio may be: a clock that jumped is no measurement. */
const [keptRatios, greatestRatio] = [16, 1.5];
/** First runs of a function that do not count, runs alone that make a median, and those that are kept. */
const [firstRuns, leastAlone, keptAlone] = [2, 2, 16];
/** Runs without a time alone after which neighbours are held for one run; and the part of all runs that may be held for. */
const [heldAfter, mostHeld] = [20, 0.02];
/** How long a place is kept for a run alone, ms. */
const keptMs = 30_000;
/** Greatest part of a run beside others with which it counts as alone. */
const leastBeside = 0.02;
/** Part of a run in which a neighbour may be missing or another one be there; and least part beside a neighbour that tells its cost. */
const [tolerance, leastOverlap] = [0.1, 0.5];
/** Features that differ by no more make functions alike. */
const alike = 0.05;
/** Sets and times alone that are kept; then the one goes that was not changed for longest. */
const [maxSets, maxAlone] = [4096, 20_000];
/** Split sets that a new one is compared with, at most. */
const maxCompared = 256;

/** Times of a function alone on a kind of GPU, for inputs of one size. */
interface Alone {
  /** The last ones, ms. */
  timesMs: number[];
  /** Its first runs, which do not count. */
  skipped: number;
  /** Runs of its sets while too few alone are known. */
  missing: number;
}

/** A place that is kept for a run alone. */
interface Kept {
  id: string;
  until: number;
}

/** State of the trials, as plain data. */
export interface SavedTrials {
  sets: readonly TriedSet[];
  alone: readonly (readonly [string, Alone])[];
  budgets: SavedBudgets;
  kept: readonly (readonly [string, Kept])[];
  held: number;
  runs: number;
}

/** Called when a set changes, and with undefined when it is forgotten. */
type OnChange = (key: string, set: TriedSet | undefined) => void;

/** Learns by their runs which sets of functions gain by sharing a place. */
export class SetTrials {
  private readonly sets = new Map<string, TriedSet>();
  /** Those of the sets that are split. */
  private readonly splits = new Set<TriedSet>();
  private readonly alone = new Map<string, Alone>();
  private readonly budgets = new TrialBudgets();
  /** By place. */
  private readonly kept = new Map<string, Kept>();
  private readonly drivers = new Map<string, number>();
  /** Runs that neighbours were held for, and all runs. */
  private held = 0;
  private runs = 0;
  private seenAt = 0;

  constructor(private readonly onChange: OnChange = () => undefined) {}

  /** What is known of those that run together on a kind of GPU, at `at`, epoch ms. */
  standing(gpu: GpuKind, together: readonly Sharer[], at: number): SetStanding {
    const ids = together.map(idOf);
    const set = this.sets.get(keyOf(gpu, ids));
    if (set !== undefined && !isOver(set, at)) return standingOf(set, ids);
    const like = this.likeSplit(gpu, together, at);
    return like === undefined ? untried : { state: 'split', runs: 0, until: like.splitAt! + splitMs };
  }

  /** Whether a third may be tried beside two, which it is where they gain enough. */
  mayTryThird(gpu: GpuKind, pair: readonly Sharer[], at: number): boolean {
    const { state, gain } = this.standing(gpu, pair, at);
    return state === 'stays' && gain !== undefined && gain.mean >= thirdFrom;
  }

  /** Why no set may be tried on a place at `at`; undefined: one may. */
  budgetSpent(place: string, at: number): SpentBudget | undefined {
    return this.budgets.spent(place, at);
  }

  /** What trials have cost all places in the ten minutes before the last run, ms. */
  costs(): Pick<SpentBudget, 'lostMs' | 'busyMs'> {
    return this.budgets.total(this.seenAt);
  }

  /** Whether a place may be kept for a run alone. */
  get keepsPlaces(): boolean {
    return this.kept.size > 0;
  }

  /**
   * The function that a place is kept for, so that it runs alone once: nothing starts beside others there, and others do not start.
   * A place is kept for `asking` if its function has never been measured alone. Undefined: the place is kept for none.
   */
  keptFor(gpu: GpuKind, place: string, asking: Sharer, at: number): 'itself' | 'another' | undefined {
    const own = aloneKey(gpu, asking);
    const known = this.kept.get(place);
    if (known !== undefined && known.until > at) return known.id === own ? 'itself' : 'another';
    if (known !== undefined) this.kept.delete(place);
    const alone = this.alone.get(own);
    if (alone === undefined || alone.missing < heldAfter || alone.timesMs.length >= leastAlone) return undefined;
    if (this.held + 1 > Math.max(1, mostHeld * this.runs)) return undefined;
    for (const { id, until } of this.kept.values()) if (id === own && until > at) return undefined;
    // If no run comes of it, the next try is as far away as the first one was.
    alone.missing = 0;
    this.held += 1;
    this.kept.set(place, { id: own, until: at + keptMs });
    return 'itself';
  }

  /** A set begins to run, of which nothing is known yet. */
  began(gpu: GpuKind, together: readonly Sharer[], at: number): void {
    if (this.standing(gpu, together, at).state === 'untried') this.setOf(gpu, together, at);
  }

  /** Learns from a run. Of a run with an SLO, of several GPUs, or that was disturbed, its place's busy time counts only. */
  ran(run: TrialRun): void {
    const { task, gpu, ranMs, beside, isWarm = true, isDisturbed = false } = run;
    if (!(ranMs > 0 && Number.isFinite(ranMs))) return;
    const at = (this.seenAt = run.endedAt ?? this.seenAt);
    const parts = beside.reduce((sum, { part }) => sum + part, 0);
    const ownMs = ranMs / (1 + parts);
    const tells = isWarm && !isDisturbed && task.gpus === 1 && task.sloMs === undefined && task.version !== '';
    if (tells) this.runs += 1;
    const isAlone = parts <= leastBeside;
    const own = tells ? this.aloneOf(aloneKey(gpu, run)) : undefined;
    const set = own !== undefined && !isAlone ? this.learnBeside(run, own, at) : undefined;
    this.budgets.ran(gpu.id, at, ownMs, set?.key, set?.lostMs);
    if (own === undefined) return;
    if (isAlone) {
      if (this.kept.get(gpu.id)?.id === aloneKey(gpu, run)) this.kept.delete(gpu.id);
      if (own.skipped >= firstRuns) own.timesMs = [...own.timesMs, ranMs].slice(-keptAlone);
    }
    if (own.skipped < firstRuns) own.skipped += 1;
  }

  /** What is known of a function alone, at a share on a kind of GPU. */
  private aloneOf(key: string): Alone {
    const alone = this.alone.get(key) ?? { timesMs: [], skipped: 0, missing: 0 };
    keepNewest(this.alone, key, alone, maxAlone);
    return alone;
  }

  /** Gives the set if the run was in a trial of it, and what work was lost. */
  private learnBeside(run: TrialRun, own: Alone, at: number): { key: string; lostMs: number } | undefined {
    const { task, gpu, share, ranMs, beside } = run;
    const neighbours = neighboursOf(beside);
    if (neighbours === undefined || neighbours.others.some((one) => one.task.sloMs !== undefined)) return undefined;
    const together = [{ task, share }, ...neighbours.others];
    const set = this.setOf(gpu, together, at);
    // A set is known once all of its members were measured alone, however few runs one of them has.
    for (const one of together) {
      const alone = this.aloneOf(aloneKey(gpu, one));
      if (alone.timesMs.length < leastAlone) alone.missing += 1;
    }
    if (own.timesMs.length < leastAlone) return undefined;
    const ids = together.map(idOf);
    const key = keyOf(gpu, ids);
    const { overlap } = neighbours;
    const ratio = (medianOf(own.timesMs) / ranMs - (1 - overlap)) / overlap;
    const bounded = Math.min(greatestRatio, Math.max(0, ratio));
    const ratios = set.ratios[ids[0]!]!;
    ratios.push(bounded);
    if (ratios.length > keptRatios) ratios.shift();
    if (set.state === 'trying') set.runs += 1;
    this.onChange(key, set);
    const wasTrial = set.state === 'trying';
    judge(set, this.bestPairIn(gpu, together, at), at);
    if (set.state === 'split') this.splits.add(set);
    return wasTrial ? { key, lostMs: ranMs * overlap * (1 / together.length - bounded) } : undefined;
  }

  /** The set, and a new one where there is none or it was split long ago. */
  private setOf(gpu: GpuKind, together: readonly Sharer[], at: number): TriedSet {
    const { gpuType, mode } = gpu;
    const sorted = together.map((one) => ({ ...one, id: idOf(one) })).sort((a, b) => (a.id < b.id ? -1 : 1));
    const members = sorted.map(({ id }) => id);
    const key = keyOf(gpu, members);
    const known = this.sets.get(key);
    if (known !== undefined && !isOver(known, at)) {
      keepNewest(this.sets, key, known, maxSets);
      return known;
    }
    const features = sorted.flatMap((one) => one.task.features ?? []);
    if (known !== undefined) this.splits.delete(known);
    const set: TriedSet = {
      ...{ gpuType, mode, members, functions: sorted.map((one) => one.task.function) },
      ...(features.length === members.length && { features }),
      ratios: Object.fromEntries(members.map((id) => [id, []])),
      runs: 0,
      state: 'trying',
      driverMajor: this.drivers.get(gpuType) ?? 0,
    };
    keepNewest(this.sets, key, set, maxSets, (oldest) => this.drop(oldest));
    return set;
  }

  /** The greatest Σ of two of three or more, at least that of turns; 0 for a pair, which has to beat turns alone. */
  private bestPairIn(gpu: GpuKind, together: readonly Sharer[], at: number): number {
    if (together.length < 3) return 0;
    let best = 1;
    for (const [index, one] of together.entries()) {
      for (const other of together.slice(index + 1)) {
        best = Math.max(best, this.standing(gpu, [one, other], at).gain?.mean ?? 1);
      }
    }
    return best;
  }

  /** A split set of functions whose figures are those of `together`; undefined: there is none, or not all have figures. */
  private likeSplit(gpu: GpuKind, together: readonly Sharer[], at: number): TriedSet | undefined {
    if (this.splits.size === 0) return undefined;
    const features = together.flatMap((one) => one.task.features ?? []);
    if (features.length < together.length) return undefined;
    const asked = features.sort(byFigures);
    let left = maxCompared;
    for (const set of this.splits) {
      if (isOver(set, at) || set.features?.length !== asked.length) continue;
      if (set.gpuType !== gpu.gpuType || set.mode !== gpu.mode) continue;
      if ([...set.features].sort(byFigures).every((one, index) => areAlike(one, asked[index]!))) return set;
      left -= 1;
      if (left === 0) return undefined;
    }
    return undefined;
  }

  /** All sets of which something is known, the one that was changed last at the end. */
  all(): readonly TriedSet[] {
    return [...this.sets.values()];
  }

  /** Takes a stored set; what was measured of it since stays. A set of a replaced driver is forgotten. */
  restoreSet(set: TriedSet): void {
    const key = [kindName(set), ...set.members].join(' ');
    if (this.sets.has(key)) return;
    if (set.driverMajor < (this.drivers.get(set.gpuType) ?? 0)) this.onChange(key, undefined);
    else this.put(key, set);
  }

  private put(key: string, set: TriedSet): void {
    this.sets.set(key, set);
    if (set.state === 'split') this.splits.add(set);
  }

  /** A GPU of the type has a driver of this major version: what was measured with an earlier one is forgotten. */
  sawDriver(gpuType: string, major: number): void {
    if (major <= (this.drivers.get(gpuType) ?? 0)) return;
    this.drivers.set(gpuType, major);
    for (const set of this.sets.values()) {
      // Agents tell the driver a little later than their devices.
      if (set.gpuType === gpuType && set.driverMajor === 0) set.driverMajor = major;
    }
    this.dropWhere((set) => set.gpuType === gpuType && set.driverMajor < major);
  }

  /** A function has a new version, or is gone (undefined): what was measured of others is forgotten. */
  sawVersion(name: string, version: string | undefined): void {
    const kept = version === undefined ? undefined : `${name}@${version}#`;
    const isOld = (id: string): boolean => id.startsWith(`${name}@`) && (kept === undefined || !id.startsWith(kept));
    this.dropWhere(({ members }) => members.some(isOld));
    for (const key of this.alone.keys()) if (isOld(key.slice(key.indexOf(' ') + 1))) this.alone.delete(key);
  }

  private dropWhere(isGone: (set: TriedSet) => boolean): void {
    for (const [key, set] of this.sets) if (isGone(set)) this.drop(key);
  }

  private drop(key: string): void {
    const set = this.sets.get(key);
    if (set !== undefined) this.splits.delete(set);
    this.sets.delete(key);
    this.onChange(key, undefined);
  }

  /** The state, for `restore`. */
  saved(): SavedTrials {
    const { held, runs } = this;
    return structuredClone({
      ...{ sets: this.all(), alone: [...this.alone], budgets: this.budgets.saved() },
      ...{ kept: [...this.kept], held, runs },
    });
  }

  /** Takes the state of another one. */
  restore(saved: SavedTrials): void {
    const { sets, alone, budgets, kept, held, runs } = structuredClone(saved);
    this.sets.clear();
    this.splits.clear();
    this.alone.clear();
    this.kept.clear();
    for (const set of sets) this.put([kindName(set), ...set.members].join(' '), set);
    for (const [key, value] of alone) this.alone.set(key, value);
    for (const [key, value] of kept) this.kept.set(key, value);
    this.budgets.restore(budgets);
    this.held = held;
    this.runs = runs;
  }
}

const untried: SetStanding = { state: 'untried', runs: 0 };

/** Decides about a set after a run. `bestPair`: Σ of the best two of its members if it has more; 0 for two. */
function judge(set: TriedSet, bestPair: number, at: number): void {
  if (set.state === 'split') return;
  const least = Math.max(leastGain, gainOverPair * bestPair);
  const gain = gainOfSet(set);
  if (gain === undefined) {
    // A long member has one run while the others have many.
    if (set.runs >= enoughRuns && roughGain(set) < least) split(set, at);
    return;
  }
  if (set.state === 'stays') {
    // Functions may change what they do under one version.
    const isWhole = Object.values(set.ratios).every(({ length }) => length >= leastRuns);
    if (isWhole && gain.high < least) split(set, at);
    return;
  }
  const { runs } = set;
  if (runs >= leastRuns && gain.low >= least) set.state = 'stays';
  // Times that are too uneven to tell decide nothing while their mean is good, and not for ever.
  else if (runs >= enoughRuns && gain.mean < least) split(set, at);
  else if (runs >= mostRuns) set.state = 'stays';
}

/** Σ(alone / together) of members with at least one run each; Infinity if one has none. */
function roughGain({ members, ratios }: TriedSet): number {
  let sum = 0;
  for (const id of members) {
    const own = ratios[id]!;
    if (own.length === 0) return Infinity;
    sum += meanOf(own);
  }
  return sum;
}

function split(set: TriedSet, at: number): void {
  set.state = 'split';
  set.splitAt = at;
}

/** Whether a set was split so long ago that it may be tried again. */
function isOver({ splitAt }: TriedSet, at: number): boolean {
  return splitAt !== undefined && at >= splitAt + splitMs;
}

function gainOfSet({ members, ratios }: TriedSet): SetGain | undefined {
  const counts = new Map<string, number>();
  for (const id of members) counts.set(id, (counts.get(id) ?? 0) + 1);
  return gainOf(Array.from(counts, ([id, count]) => ({ count, ratios: ratios[id]! })));
}

function standingOf(set: TriedSet, ids: readonly string[]): SetStanding {
  const { state, runs, splitAt } = set;
  const gain = gainOfSet(set);
  return {
    state,
    runs,
    ...(gain !== undefined && { gain, slowdowns: ids.map((id) => 1 / Math.max(0.01, meanOf(set.ratios[id]!))) }),
    ...(splitAt !== undefined && { until: splitAt + splitMs }),
  };
}

/** How much longer than alone members of a set take, as `SetStanding.slowdowns`, in the order of its members. */
export function standingOfSet(set: TriedSet): SetStanding {
  return standingOf(set, set.members);
}

/** A function in a set goes by its version, its batch and the class of its share. */
const idOf = ({ task, share }: Sharer): string => `${jobId(jobOf(task))}:${classAtOrAbove(share)}`;

const keyOf = (gpu: GpuKind, ids: readonly string[]): string => [kindName(gpu), ...[...ids].sort()].join(' ');

/** Times alone are of inputs of one size. */
const aloneKey = (gpu: GpuKind, one: Sharer): string => {
  const { inputSize } = one.task;
  const key = `${kindName(gpu)} ${idOf(one)}`;
  if (inputSize === undefined) return key;
  const { unit, upTo } = bucketOf(inputSize);
  return `${key} ${unit} ${upTo}`;
};

/** Those who were beside a run all the time; or one for most of it, with the part of the run. Undefined: that changed meanwhile. */
function neighboursOf(beside: ObservedRun['beside']): { others: Sharer[]; overlap: number } | undefined {
  const kinds = new Map<string, Sharer & { part: number }>();
  for (const { task, share, part } of beside) {
    const id = idOf({ task, share });
    kinds.set(id, { task, share, part: part + (kinds.get(id)?.part ?? 0) });
  }
  const [first, ...more] = kinds.values();
  if (first === undefined) return undefined;
  if (more.length === 0 && first.part >= leastOverlap && first.part <= 1 + tolerance)
    return { others: [first], overlap: Math.min(1, first.part) };
  const others: Sharer[] = [];
  let off = 0;
  for (const one of [first, ...more]) {
    const count = Math.round(one.part);
    off += Math.abs(one.part - count);
    for (let at = 0; at < count; at += 1) others.push(one);
  }
  return off <= tolerance && others.length > 0 ? { others, overlap: 1 } : undefined;
}

function byFigures(one: WorkloadFeatures, other: WorkloadFeatures): number {
  return one.smUtil - other.smUtil || (one.dramUtil ?? 0) - (other.dramUtil ?? 0);
}

function areAlike(one: WorkloadFeatures, other: WorkloadFeatures): boolean {
  const differs = (a: number | undefined, b: number | undefined): boolean => Math.abs((a ?? 0) - (b ?? 0)) > alike;
  return !(
    differs(one.smUtil, other.smUtil) ||
    differs(one.dramUtil, other.dramUtil) ||
    differs(one.l2Util, other.l2Util)
  );
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
