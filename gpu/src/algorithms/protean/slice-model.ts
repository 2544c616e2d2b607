// PROTEAN's slowdown model on the slices of a device, and the number of best-effort batches for which small slices suit.
import { knownKind } from './slowdowns.js';
import type { KnownKind, SliceSlowdowns } from './slowdowns.js';
import { gpuTypeOf, usableMiB } from '../../ledger/places.js';
import type { Task } from '../../view/view.js';
import { memorySlots } from '../../stages/geometry/mig-profiles.js';
import type { CandidateSets } from './candidate-sets.js';
import type { MigProfile } from '../../stages/geometry/mig-profiles.js';

/** A slice of a type of device, and the profile of the whole device. */
export interface SliceKind {
  /** Short name of the device's model. */
  type: string;
  slice: MigProfile;
  whole: MigProfile;
}

/** The terms of PROTEAN's slowdown (section 3, equations 1 and 2) of tasks on slices. */
export interface SliceModel {
  /** Resource deficiency factor: time alone on the slice over time alone on the whole device, at least 1. */
  deficiency(task: Task, kind: SliceKind): number;
  /** Fractional bandwidth requirement: part of the slice's bandwidth that the task asks for when alone there, from 0. */
  bandwidth(task: Task, kind: SliceKind): number;
}

/** Assumed of a task without figures: it fills the device. */
const unknownSmUtil = 1;

/**
 * The terms from a task's figures on a whole device: a slice is too small for it by the larger of its use of SMs over the
 * slice's part of them and its use of bandwidth over the slice's part of the memory slots.
 */
export const byFigures: SliceModel = {
  deficiency({ features }, { slice, whole }) {
    const { smUtil = unknownSmUtil, dramUtil = 0 } = features ?? {};
    return Math.max(1, (smUtil * whole.smCount) / slice.smCount, (dramUtil * memorySlots) / slice.slots);
  },
  bandwidth(task, kind) {
    const { dramUtil = 0 } = task.features ?? {};
    return (dramUtil * memorySlots) / kind.slice.slots / byFigures.deficiency(task, kind);
  },
};

/**
 * The terms as they were learned from runs; from a task's figures where its time is not known, and bandwidth also where the
 * learned one does not beat a constant.
 */
export function learnedSlices(slowdowns: SliceSlowdowns): SliceModel {
  return {
    deficiency(task, kind) {
      const kinds = [knownOn(kind.type, kind.slice), knownOn(kind.type, kind.whole)];
      const { times, isTimed } = slowdowns.aloneOn(task, kinds);
      const [there = 1, alone = 1] = times;
      return isTimed ? Math.max(1, there / alone) : byFigures.deficiency(task, kind);
    },
    bandwidth(task, kind) {
      const learned = slowdowns.bandwidthsOn(knownOn(kind.type, kind.slice));
      return learned?.isProven === true ? learned.of(task.function) : byFigures.bandwidth(task, kind);
    },
  };
}

function knownOn(type: string, { name }: MigProfile): KnownKind {
  return knownKind({ gpuType: gpuTypeOf({ type }, { profile: name }), mode: 'mig' });
}

/** Functions with their weights: batches at once for best effort, requests in a window for strict ones. */
export type Weighted = readonly { task: Task; weight: number }[];

/** Best effort and strict work that share the devices of one type. */
export interface Mix {
  type: string;
  sets: CandidateSets;
  bestEffort: Weighted;
  strict: Weighted;
  /** Mean device memory of a best-effort batch, MiB. */
  batchMiB: number;
}

/** Best-effort batches of `batchMiB` on each slice of a set that is filled in its order (first fit). */
export function packed(set: readonly MigProfile[], count: number, batchMiB: number): number[] {
  let left = count;
  return set.map((slice) => {
    const here = Math.min(left, Math.floor(usableMiB(slice) / batchMiB));
    left -= here;
    return here;
  });
}

/** Most batches for which thresholds are sought. */
const mostBatches = 1000;

/**
 * The least and the greatest number of best-effort batches on a device at which strict requests that do not get the large
 * slice are slowed down less on the small slices [1g, 2g] than on a 3g that all batches share (T_low and T_high of
 * algorithm 2, section 4.4). Undefined if that holds for no number, or no strict work is known to fit.
 */
export function thresholds(model: SliceModel, mix: Mix): { low: number; high: number } | undefined {
  const [small = [], [medium] = []] = mix.sets.small;
  const strict = mix.strict.filter(({ task }) => medium !== undefined && task.memoryMiB <= usableMiB(medium));
  if (medium === undefined || strict.length === 0 || !(mix.batchMiB > 0)) return undefined;
  const room = small.reduce((sum, slice) => sum + Math.floor(usableMiB(slice) / mix.batchMiB), 0);
  const most = Math.min(mostBatches, room);
  const isBetter = (count: number): boolean => {
    const apart = slowdown(model, mix, strict, small, packed(small, count, mix.batchMiB));
    return apart <= slowdown(model, mix, strict, [medium], [count]);
  };
  let low = 0;
  while (low <= most && !isBetter(low)) low += 1;
  if (low > most) return undefined;
  let high = low;
  while (high < most && isBetter(high + 1)) high += 1;
  return { low, high };
}

/**
 * Mean slowdown η of strict work on the best slice of a set beside `counts` batches on each (equation 2). A slice that best
 * effort fills (tag 1) is taken only if all are full. Infinity if a task fits on none.
 */
function slowdown(
  model: SliceModel,
  { type, sets, bestEffort, batchMiB }: Mix,
  strict: Weighted,
  set: readonly MigProfile[],
  counts: readonly number[],
): number {
  const isFull = set.map((slice, at) => ((counts[at] ?? 0) + 1) * batchMiB > usableMiB(slice));
  const open = set.flatMap((slice, at) =>
    isFull.every(Boolean) || !isFull[at] ? [{ slice, count: counts[at] ?? 0 }] : [],
  );
  return mean(strict, (task) =>
    open.reduce((least, { slice, count }) => {
      if (task.memoryMiB > usableMiB(slice)) return least;
      const kind = { type, slice, whole: sets.whole };
      const others = count * mean(bestEffort, (other) => model.bandwidth(other, kind));
      return Math.min(least, model.deficiency(task, kind) * Math.max(1, model.bandwidth(task, kind) + others));
    }, Infinity),
  );
}

function mean(of: Weighted, value: (task: Task) => number): number {
  let [sum, weights] = [0, 0];
  for (const { task, weight } of of) {
    sum += weight * value(task);
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}
