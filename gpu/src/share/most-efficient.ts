import { hasShare } from '../place/place.js';
import type { Seat } from '../place/place.js';
import { soloTimes } from '../predict/solo-times.js';
import type { Task } from '../view/view.js';
import { budgetMs } from './budget.js';
import { classFractions, fillingShare } from './filling.js';
import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';

/** Shares whose throughput per share is so close to the best, which predictors err by, are as good; the largest of them ends soonest. */
const tolerance = 0.15;

/**
 * The share with the most throughput for what it takes among those that meet the SLO, by the throughput that a function's
 * profile gives at each (FaST-GShare, Gu and others, ICPP 2023).
 */
export function mostEfficient(predictorOf: Parameters<typeof soloTimes>[0]): ShareOut {
  const soloMsAt = soloTimes(predictorOf);
  const efficient = (task: Task, seat: Seat, at: number): number => {
    const budget = budgetMs(task, at);
    const rated = classFractions
      .map((share) => ({ share, ms: soloMsAt(task, share, seat.gpu) }))
      .filter(({ ms }) => ms <= budget && Number.isFinite(ms))
      .map(({ share, ms }) => ({ share, efficacy: 1 / (ms * share) }));
    const best = Math.max(...rated.map(({ efficacy }) => efficacy));
    return rated.findLast(({ efficacy }) => efficacy >= best * (1 - tolerance))?.share ?? fillingShare(task);
  };
  return (task, seat, at) => {
    const share = task.share ?? efficient(task, seat, at);
    return hasShare(seat, share) ? granted(share) : refused('no rectangle is left', { load: seat.load, share });
  };
}
