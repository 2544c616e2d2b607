// The stage `share`: its interface, and the shares that need no prediction.
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Refusal } from '../place/fact-filters.js';
import type { Grant, CandidatePlace } from '../place/place.js';
import type { Task } from '../../view/view.js';
import { hasShare } from '../place/place.js';
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
