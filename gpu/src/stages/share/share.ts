// The stage `share`: its interface, and the shares that need no prediction.
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Refusal } from '../place/fact-filters.js';
import type { Grant, CandidatePlace } from '../place/place.js';
import type { Task } from '../../view/view.js';
import { hasShare, rounding } from '../place/place.js';
import { classAtOrAbove } from '../../view/shares.js';

/** The stage that gives a task a part of a place which has memory for it, or refuses it one. */
export type ShareOut = (task: Task, candidate: CandidatePlace, at: number) => Grant | Refusal;

/** A share that is all that the task should have. */
export function granted(share: number): Grant {
  return { share, lacks: 0 };
}

/** Whether a GPU is refused. */
export function isRefusal(given: Grant | Refusal): given is Refusal {
  return 'reason' in given;
}

/** A refusal with the numbers that decided. */
export function refused(reason: string, numbers: Refusal['numbers']): Refusal {
  return { reason, numbers };
}

/** All of a GPU on which nothing runs. */
export const whole: ShareOut = (_, { account: { busy } }) =>
  busy > 0 ? refused('it is not free', { running: busy }) : granted(1);

/** The whole GPU for up to `slots` tasks at a time: the hardware divides it evenly. */
export function unlimited(slots: number): ShareOut {
  return (_, { account: { busy } }) =>
    busy >= slots ? refused('it has as many as it serves', { running: busy, slots }) : granted(1);
}

/** The share classes as fractions, rising. */
export const classFractions: readonly number[] = shareClasses.map((percent) => percent / 100);

/** The smallest class that holds all SMs that the task uses when alone; the whole GPU where it has not been profiled. */
export function fillingShare({ features }: Task): number {
  return features ? classAtOrAbove(features.smUtil) / 100 : 1;
}

/** What the task fills, at most what it may have. */
export function sufficientShare(task: Task): number {
  return Math.min(task.maxShare ?? 1, fillingShare(task));
}

/** What the task fills, where as much is left. */
export const filling: ShareOut = (task, candidate) => {
  const share = task.share ?? fillingShare(task);
  return hasShare(candidate, share)
    ? granted(share)
    : refused('too little of its SMs is left', { load: candidate.account.load, share });
};

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
