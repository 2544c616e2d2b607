import { deadlineAt } from '../policy.js';
import type { Task } from '../policy.js';
import type { PolicyNeeds } from '../registry.js';
import { hasShare } from './greedy.js';
import type { GreedyRule, Seat } from './greedy.js';
import { budgetMs, fillingShare, soloTimes } from './solo-time.js';

/** Of an A100 or H100, as parts of the GPU. */
const slices = [1 / 7, 2 / 7, 3 / 7, 4 / 7, 1];

/**
 * FluidFaaS (Hui and others, HPDC 2025): isolated slices in MIG's sizes. A function takes the smallest slice that meets
 * its SLO (or, without one, that holds the SMs that it uses), on the GPU where that leaves the least; where no GPU has
 * such a slice, it runs on the largest fragment that is left, as long as that still meets its SLO (or is at least half of
 * what it would take), which is what its pipelines over fragments are for. Functions here are of one stage, so that none
 * is spread over several GPUs. The slices are MPS shares on GPUs without MIG, which isolate SMs but not memory traffic.
 */
export function fluidfaas(needs: Pick<PolicyNeeds, 'predictorOf'>): GreedyRule {
  const soloMsAt = soloTimes(needs);
  const meets = (task: Task, share: number, seat: Seat, at: number): boolean =>
    soloMsAt(task, share, seat.gpu) <= budgetMs(task, at);
  const wanted = (task: Task, seat: Seat, at: number): number => {
    const isEnough =
      task.sloMs === undefined
        ? (share: number): boolean => share >= fillingShare(task)
        : (share: number): boolean => meets(task, share, seat, at);
    return slices.find(isEnough) ?? 1;
  };
  return {
    name: 'fluidfaas',
    compare: (a, b) => deadlineOrder(a) - deadlineOrder(b),
    offer(task, seat, at) {
      const best = task.share ?? wanted(task, seat, at);
      if (hasShare(seat, best)) return { share: best, cost: 1 - seat.load - best };
      const fragment = slices.findLast((slice) => hasShare(seat, slice));
      if (fragment === undefined || task.share !== undefined) return 'no slice is left';
      const isEnough = task.sloMs === undefined ? fragment >= best / 2 : meets(task, fragment, seat, at);
      // A fragment is taken only where no GPU has the slice itself.
      return isEnough ? { share: fragment, cost: 1 + best - fragment } : 'the fragments are too small';
    },
  };
}

function deadlineOrder(task: Task): number {
  return task.sloMs === undefined ? Number.MAX_VALUE : deadlineAt(task);
}
