// Implementations of the stage `share` that only baselines name and that need no prediction.
import { rounding } from '@gpuwhisk/gpu/stages/place/place';
import type { CandidatePlace } from '@gpuwhisk/gpu/stages/place/place';
import { classFractions, fillingShare, granted, refused } from '@gpuwhisk/gpu/stages/share/share';
import type { ShareOut } from '@gpuwhisk/gpu/stages/share/share';

/** Settings of stages that may give more of a GPU away than it has. */
export const overcommitDefaults = {
  /** Greatest sum of the shares of a GPU, as a fraction of its SMs. */
  maxLoad: 1,
};

/** What the task fills, while the shares of its GPU sum to at most `maxLoad`. */
export function fillingUpTo({ maxLoad }: typeof overcommitDefaults): ShareOut {
  return (task, candidate) => {
    const share = task.share ?? fillingShare(task);
    return hasShare(candidate, share, maxLoad)
      ? granted(share)
      : refused('too little of its SMs is left', { load: candidate.account.load, share, maxLoad });
  };
}

/** Whether a place gives at most `maxLoad` of its SMs away with `share` more. */
export function hasShare({ account: { load } }: CandidatePlace, share: number, maxLoad: number): boolean {
  return load + share <= maxLoad + rounding;
}

/** As `fillingUpTo`, but each task may use the whole GPU: what it fills counts for its place and is not enforced. */
export function fillingUncapped({ maxLoad }: typeof overcommitDefaults): ShareOut {
  return (task, { residents }) => {
    const taken = residents.reduce((sum, { task: one }) => sum + (one.share ?? fillingShare(one)), 0);
    const fill = task.share ?? fillingShare(task);
    return taken + fill <= maxLoad + rounding ? granted(1) : refused('too little of its SMs is left', { taken, fill });
  };
}

/**
 * A GPU takes one task with an SLO, at the share that it can use, and one without, at the share that the first leaves (TGS,
 * Wu and others, NSDI 2023: production and opportunistic jobs). The control loop of TGS would settle at the greatest share
 * class that the other's use of the SMs leaves free. The share cannot be raised when the production job ends, as TGS would,
 * so that a task is refused a GPU that leaves less than half of its use. `maxLoad`: what is left is taken of so many GPUs.
 */
export function leftOver({ maxLoad }: typeof overcommitDefaults): ShareOut {
  return (task, candidate) => {
    const [first, second] = candidate.residents;
    if (second) return refused('it has a production job and an opportunistic one', { running: candidate.account.busy });
    if (!first) return granted(1);
    if (task.sloMs !== undefined) {
      const isTaken = first.task.sloMs !== undefined;
      return isTaken ? refused('it has a production job', { running: candidate.account.busy }) : granted(1);
    }
    const share = leftBy(candidate, maxLoad);
    const least = fillingShare(task) / 2;
    return share < least ? refused('the job there leaves too little', { share, least }) : granted(share);
  };
}

/** The greatest class that the residents leave free of `maxLoad`; 0 if there is none. */
function leftBy({ residents }: CandidatePlace, maxLoad: number): number {
  const used = residents.reduce((sum, { task, share }) => sum + Math.min(share, task.features?.smUtil ?? 1), 0);
  return classFractions.findLast((fraction) => used + fraction <= maxLoad) ?? 0;
}
