import { deadlineAt } from '../policy.js';
import type { Task } from '../policy.js';
import type { PolicyNeeds } from '../registry.js';
import { hasShare } from './greedy.js';
import type { GreedyRule, Seat } from './greedy.js';
import { budgetMs, classFractions, fillingShare, soloTimes } from './solo-time.js';

/** Shares whose throughput per share is so close to the best, which predictors err by, are as good; the largest of them ends soonest. */
const tolerance = 0.15;

/**
 * FaST-GShare (Gu and others, ICPP 2023): the profile of a function gives its throughput at each spatial share; it gets
 * the share with the most throughput for what it takes among those that meet its SLO, and is put where the rectangle of
 * share and time that it takes leaves the least over (the whole of the time, since a job here never pauses). Functions
 * that can meet their SLO are in a queue that goes before the others.
 */
export function fastGshare(needs: Pick<PolicyNeeds, 'predictorOf'>): GreedyRule {
  const soloMsAt = soloTimes(needs);
  const efficient = (task: Task, seat: Seat, at: number): number => {
    const budget = budgetMs(task, at);
    const rated = classFractions
      .map((share) => ({ share, ms: soloMsAt(task, share, seat.gpu) }))
      .filter(({ ms }) => ms <= budget && Number.isFinite(ms))
      .map(({ share, ms }) => ({ share, efficacy: 1 / (ms * share) }));
    const best = Math.max(...rated.map(({ efficacy }) => efficacy));
    return rated.findLast(({ efficacy }) => efficacy >= best * (1 - tolerance))?.share ?? fillingShare(task);
  };
  return {
    name: 'fast-gshare',
    compare: (a, b) => deadlineOrder(a) - deadlineOrder(b),
    offer(task, seat, at) {
      const share = task.share ?? efficient(task, seat, at);
      return hasShare(seat, share) ? { share, cost: 1 - seat.load - share } : 'no rectangle is left';
    },
  };
}

function deadlineOrder(task: Task): number {
  return task.sloMs === undefined ? Number.MAX_VALUE : deadlineAt(task);
}
