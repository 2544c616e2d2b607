// Implementations of the stage `share` that only baselines name and that need no prediction.
import { rounding } from '@gpuwhisk/gpu/stages/place/place';
import type { CandidatePlace } from '@gpuwhisk/gpu/stages/place/place';
import { classFractions, fillingShare, granted, refused } from '@gpuwhisk/gpu/stages/share/share';
import type { ShareOut } from '@gpuwhisk/gpu/stages/share/share';

/** As `filling`, but each task may use the whole GPU: what it fills counts for its place and is not enforced. */
export const fillingUncapped: ShareOut = (task, { residents }) => {
  const taken = residents.reduce((sum, { task: one }) => sum + (one.share ?? fillingShare(one)), 0);
  const fill = task.share ?? fillingShare(task);
  return taken + fill <= 1 + rounding ? granted(1) : refused('too little of its SMs is left', { taken, fill });
};

/**
 * A GPU takes one task with an SLO, at the share that it can use, and one without, at the share that the first leaves (TGS,
 * Wu and others, NSDI 2023: production and opportunistic jobs). The control loop of TGS would settle at the greatest share
 * class that the other's use of the SMs leaves free. The share cannot be raised when the production job ends, as TGS would,
 * so that a task is refused a GPU that leaves less than half of its use.
 */
export const leftOver: ShareOut = (task, candidate) => {
  const [first, second] = candidate.residents;
  if (second) return refused('it has a production job and an opportunistic one', { running: candidate.account.busy });
  if (!first) return granted(1);
  if (task.sloMs !== undefined) {
    const isTaken = first.task.sloMs !== undefined;
    return isTaken ? refused('it has a production job', { running: candidate.account.busy }) : granted(1);
  }
  const share = leftBy(candidate);
  const least = fillingShare(task) / 2;
  return share < least ? refused('the job there leaves too little', { share, least }) : granted(share);
};

/** The greatest class that the residents leave free; 0 if there is none. */
function leftBy({ residents }: CandidatePlace): number {
  const used = residents.reduce((sum, { task, share }) => sum + Math.min(share, task.features?.smUtil ?? 1), 0);
  return classFractions.findLast((fraction) => used + fraction <= 1) ?? 0;
}
