// The rule by which best-effort functions share a GPU from their first call, until measurements say whether they gain.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { functionKeyOf } from '../../ledger/occupancy.js';
import type { PlaceAccount } from '../../ledger/account.js';
import type { SetTrials, Sharer } from '../../share/set-trials.js';
import type { Task } from '../../view/view.js';
import { classAtOrAbove, holdsToShares } from '../../view/shares.js';
import { idleInstances } from './candidate.js';
import type { Refusal } from './fact-filters.js';

/** How much slower than alone a pair is taken to be before it was measured; 0: a prediction is asked. */
export interface AssumedSlowdowns {
  /** One of them has no figures. */
  unknown: number;
  /** Each of them has, and one is known to fill the GPU. */
  full: number;
}

/** Whether a policy knows what a task does to others on a kind of GPU. */
export type IsKnown = (task: Task, gpu: GpuKind) => boolean;

/** A place that the rule is asked about. */
export interface SharedPlace extends GpuKind {
  id: string;
  account: PlaceAccount;
}

/** Tasks on a GPU, at most, and how many may be there before they were measured. */
const [mostTogether, mostUntried] = [3, 2];
/**
 * Slowdown that a pair in time slices is taken to have: the measured ones do the work of turns (41 pairs: 0.98), more where a function
 * leaves the GPU idle between kernels.
 */
const slicedSlowdown = 1.9;
/** Start of an instance that was never measured, on a real and on a simulated GPU, ms: the stand-in takes 252 for a context and a module. */
const [unmeasuredStartMs, simulatedStartMs] = [5000, 300];

/** Whether nothing is known of what a task does to others: best effort without figures, in runs of one request on one GPU. */
export function isUnknown({ sloMs, gpus, batch, features, profiledShares, version }: Task): boolean {
  if (features !== undefined || profiledShares !== undefined) return false;
  // A run that another controller has started has no version here: it may be anything.
  return sloMs === undefined && gpus === 1 && batch === 1 && version !== '';
}

/** Whether it has the whole GPU as its class: neither its owner nor its namespace bounds it. */
function isUnbounded({ share = 1, maxShare = 1 }: Task): boolean {
  return share >= 1 && maxShare >= 1;
}

const isStrict = ({ sloMs }: Task): boolean => sloMs !== undefined;

/**
 * Best-effort tasks that share a GPU before anything was measured of them together. Two of them, at least one of which is unknown or
 * fills the GPU, are taken to slow each other down by an assumed part. Their runs are measured (`SetTrials`): a set that gains
 * stays, one that does not is split. A third joins two that gain much. None runs beside a task with an SLO while it is unknown. With 1.35
 * two do 1.48 times the work of turns: the median of pairs under MPS at 100 % each on an A100 (Abacus, SC 2021); KACE
 * measured 1.61 on a V100.
 */
export class FirstShare {
  /** `isKnown`: whether the policy knows by other measurements what a task does to others; absent: by none. */
  constructor(
    private readonly assumed: AssumedSlowdowns,
    private readonly trials: SetTrials,
    private readonly isKnown: IsKnown = () => false,
  ) {}

  /** How much slower than alone the tasks of a set are, in their order; undefined: the rule is not about them. */
  slowdowns(gpu: GpuKind, together: readonly Sharer[], at: number): readonly number[] | undefined {
    if (!this.isUnder(gpu, together)) return undefined;
    const { slowdowns } = this.trials.standing(gpu, together, at);
    return slowdowns ?? together.map(() => this.slowdownOf(gpu, together, at));
  }

  /** Whether tasks that run together are a set which the rule is about and which is still being tried. */
  isUnmeasured(gpu: GpuKind, together: readonly Sharer[], at: number): boolean {
    if (!this.isUnder(gpu, together)) return false;
    const { state } = this.trials.standing(gpu, together, at);
    return state === 'untried' || state === 'trying';
  }

  /** Whether the rule may refuse a task a place on which nothing runs. */
  get isAboutEmptyPlaces(): boolean {
    return this.trials.keepsPlaces;
  }

  /**
   * Why a task with a share (fraction) may not start beside `there`; undefined: the rule allows it. `waitMs`: how long the last waiting
   * task of its function would wait for the instances that run.
   */
  refusal(
    place: SharedPlace,
    there: readonly Sharer[],
    asking: Sharer,
    { at, waitMs }: { at: number; waitMs(): number },
  ): Refusal | undefined {
    const { task } = asking;
    const isNew = this.isUnknownOn(place, task);
    if (isStrict(task)) {
      const beside = there.filter((one) => this.isUnknownOn(place, one.task)).length;
      return beside > 0 ? { reason: besideUnknown, numbers: { beside } } : undefined;
    }
    if (isNew && there.some((one) => isStrict(one.task)))
      return { reason: besideStrict, numbers: { beside: there.length } };
    if (!sharesIn(place)) return undefined;
    const kept = this.isTried(place, task) ? this.trials.keptFor(place, place.id, asking, at) : undefined;
    if (kept === 'another' || (kept === 'itself' && there.length > 0)) {
      return { reason: kept === 'another' ? keptForAlone : waitsForAlone, numbers: { beside: there.length } };
    }
    const together = [...there, asking];
    if (there.length === 0 || !together.some((one) => this.isTried(place, one.task))) return undefined;
    const problem = this.refusalOfSet(place, together, at);
    if (problem !== undefined) return problem;
    const own = functionKeyOf(task);
    if (!isNew || !there.some((one) => functionKeyOf(one.task) === own)) return undefined;
    return mayStartSecond(place, task, waitMs());
  }

  private refusalOfSet(place: SharedPlace, together: readonly Sharer[], at: number): Refusal | undefined {
    const beside = together.length - 1;
    if (together.length > mostTogether) return { reason: tooMany, numbers: { beside } };
    if (!this.isUnder(place, together)) {
      return together.length > mostUntried ? { reason: noThird, numbers: { beside } } : undefined;
    }
    const { state, gain, until = 0, runs } = this.trials.standing(place, together, at);
    if (state === 'stays') return undefined;
    if (state === 'split') {
      const leftMs = until - at;
      if (gain === undefined) return { reason: splitAlike, numbers: { leftMs } };
      return { reason: splitSet, numbers: { gain: gain.mean, runs, leftMs } };
    }
    if (together.length > mostUntried && !this.trials.mayTryThird(place, together.slice(0, beside), at))
      return { reason: noThird, numbers: { beside } };
    const spent = this.trials.budgetSpent(place.id, at);
    if (spent === undefined) return undefined;
    const { lostMs, busyMs, nextAt } = spent;
    return { reason: budgetSpent, numbers: { lostMs, busyMs, nextInMs: nextAt - at } };
  }

  /** Whether the rule is about a set: best effort on one GPU, one of them tried. */
  private isUnder(gpu: GpuKind, together: readonly Sharer[]): boolean {
    if (together.length < 2 || together.length > mostTogether || !sharesIn(gpu)) return false;
    let tried = 0;
    for (const { task } of together) {
      if (task.sloMs !== undefined || task.gpus !== 1 || task.batch !== 1 || task.version === '') return false;
      if (this.isTried(gpu, task)) tried += 1;
      else if (this.isUnknownOn(gpu, task)) return false;
    }
    return tried > 0;
  }

  /** Whether a task has the whole GPU as its class, and nothing says what that does to others. */
  private isTried(gpu: GpuKind, task: Task): boolean {
    if (!isUnbounded(task)) return false;
    if (this.isUnknownOn(gpu, task)) return true;
    const { sloMs, gpus, batch, version, features } = task;
    const isFull = features !== undefined && classAtOrAbove(features.smUtil) === 100;
    return this.assumed.full > 0 && isFull && sloMs === undefined && gpus === 1 && batch === 1 && version !== '';
  }

  private isUnknownOn(gpu: GpuKind, task: Task): boolean {
    return isUnknown(task) && !this.isKnown(task, gpu);
  }

  private slowdownOf(gpu: GpuKind, together: readonly Sharer[], at: number): number {
    if (!holdsToShares(gpu.mode)) return slicedSlowdown;
    const pair = together.some(({ task }) => isUnknown(task)) ? this.assumed.unknown : this.assumed.full;
    if (together.length === 2) return pair;
    // Three do no more than the best two of them (KACE: 0.99).
    const gain = this.trials.standing(gpu, together.slice(0, 2), at).gain?.mean ?? 2 / pair;
    return together.length / gain;
  }
}

/** The rule with these slowdowns; undefined with 0 for unknown ones. */
export function firstShareOf(assumed: AssumedSlowdowns, trials: SetTrials, isKnown?: IsKnown): FirstShare | undefined {
  return assumed.unknown > 0 ? new FirstShare(assumed, trials, isKnown) : undefined;
}

const besideStrict = 'nothing is measured of it, and a task with an SLO is there';
const besideUnknown = 'it has an SLO, and nothing is measured of what is there';
const noThird = 'at most two run together while nothing is measured of one of them';
const tooMany = 'at most three run together of which one is unknown or fills the GPU';
const keptForAlone = 'it is kept for a run alone, by which others are measured';
const waitsForAlone = 'it is measured alone next, once what runs there has ended';
const splitSet = 'measured: together they do too little more work than in turns';
const splitAlike = 'functions of like figures do too little more work together than in turns';
const budgetSpent = 'trial-budget-spent: trials of sets have cost this GPU as much as they may';

/** Whether processes run side by side in a mode at all. */
const sharesIn = ({ mode }: GpuKind): boolean => mode !== 'exclusive';

/** A further instance of a function starts where the last of its requests would wait (`waitMs`) for longer than that takes. */
function mayStartSecond({ account }: SharedPlace, task: Task, waitMs: number): Refusal | undefined {
  if (idleInstances(account.occupants, task).length > 0) return undefined;
  const startMs = task.startMs ?? (account.place.device.simulated ? simulatedStartMs : unmeasuredStartMs);
  if (waitMs > startMs) return undefined;
  return {
    reason: 'its function runs there and is free sooner than another instance of it starts',
    numbers: { waitMs, startMs },
  };
}
