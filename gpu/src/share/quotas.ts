// The interface of share choices for sets, and the guardrail, which goes by predictions alone.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each job of a set, and classes are indices of `shareClasses` */
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures, SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Task } from '../view/view.js';

/** A job of a set that shares a GPU. */
export interface QuotaJob {
  /** `/namespace/action` of its code. */
  function: string;
  /** Of the function; what is learned holds for one. */
  version: string;
  /** Requests that run together. */
  batch: number;
  /** Time alone at 100 %, ms; absent: it has not been measured. */
  soloMs?: number;
  /** Absent: it has not been profiled. */
  features?: WorkloadFeatures;
}

/** The job that a task is a run of. */
export function jobOf({ function: name, version, batch, soloMs, features }: Task): QuotaJob {
  return {
    function: name,
    version,
    batch,
    ...(soloMs !== undefined && { soloMs }),
    ...(features !== undefined && { features }),
  };
}

/** The shares that a set is to have. */
export interface QuotaChoice {
  /** By job, in the order of the set: fractions, each a share class. */
  shares: number[];
  /** Measured for this very set, for the one most like it, or the smallest classes that are predicted to do. */
  source: 'hit' | 'nearest' | 'guardrail';
  /** On a hit: the measured slowdowns with these shares, by job. */
  slowdowns?: number[];
  /** Jobs, by their place in the set, that no class is known or predicted to bring within their budget. */
  unmet: number[];
}

/** By job, the share that it has and keeps, a fraction; undefined or absent: one is to be found. */
export type FixedShares = readonly (number | undefined)[];

/** Decides how jobs that run together share a GPU (FaaShare, section VII). */
export interface Quotas {
  /**
   * Shares for `set` on a kind of GPU. `budgetsMs` has, by job,
   * the time from its start that its deadline leaves; Infinity where it has none. What is measured counts where those
   * with a fixed share had just that. Of measured shares the best have the least sum of slowdowns weighted by `leftMs`: by
   * job the time alone that is still ahead, ms; absent: all weigh the same.
   */
  shareFor(
    set: readonly QuotaJob[],
    gpu: GpuKind,
    budgetsMs: readonly number[],
    fixed?: FixedShares,
    leftMs?: readonly number[],
  ): QuotaChoice;
  /**
   * The measured slowdowns of this very set with `shares`, fractions: the median of the measurements by job. Undefined
   * where the set was not measured with these shares, or less often than `atLeast` times (at most 5; default 1).
   */
  slowdownsAt(
    set: readonly QuotaJob[],
    gpu: GpuKind,
    shares: readonly number[],
    atLeast?: number,
  ): number[] | undefined;
}

/** Part of a budget that a prediction may take: the rest is for its error. */
const budgetPart = 0.9;

/**
 * The smallest classes with which every job is predicted to keep to nine tenths of its budget (FaaShare's guardrail,
 * section VII-B). Jobs without a budget have an equal part of the GPU. Where a larger share of one slows others down,
 * theirs grow too; none shrinks, so that it ends. A job that was not profiled or has no solo time gets an equal part
 * too and counts as unmet where it has a budget. Who has a fixed share keeps it.
 */
export function guardrail(
  set: readonly QuotaJob[],
  budgetsMs: readonly number[],
  predictor: SlowdownPredictor,
  fixed: FixedShares = [],
): QuotaChoice {
  const fair = shareClasses.findLast((share) => share * set.length <= 100) ?? shareClasses[0];
  const isPredictable = ({ features, soloMs }: QuotaJob, at: number): boolean =>
    fixed[at] === undefined && budgetsMs[at]! < Infinity && features !== undefined && soloMs !== undefined;
  const classes = set.map((job, at) => (isPredictable(job, at) ? 0 : shareClasses.indexOf(fair)));
  const shareOf = (at: number): number => fixed[at] ?? shareClasses[classes[at]!]! / 100;
  const keeps = (at: number): boolean => {
    const { features, soloMs } = set[at]!;
    if (features === undefined || soloMs === undefined) return false;
    const others = set.flatMap((other, place) =>
      place !== at && other.features !== undefined ? [{ features: other.features, share: shareOf(place) }] : [],
    );
    return soloMs * predictor.slowdown({ features, share: shareOf(at) }, others) <= budgetPart * budgetsMs[at]!;
  };
  for (let grew = true; grew;) {
    grew = false;
    for (const [at, job] of set.entries()) {
      if (!isPredictable(job, at) || classes[at]! === shareClasses.length - 1 || keeps(at)) continue;
      classes[at]! += 1;
      grew = true;
    }
  }
  return {
    shares: set.map((_, at) => shareOf(at)),
    source: 'guardrail',
    unmet: [...set.keys()].filter((at) => budgetsMs[at]! < Infinity && !keeps(at)),
  };
}
