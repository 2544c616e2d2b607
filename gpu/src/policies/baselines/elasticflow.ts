import type { Task } from '../policy.js';
import type { GreedyRule } from './greedy.js';

/**
 * ElasticFlow (Gu and others, ASPLOS 2023): whole GPUs only; jobs whose minimum satisfactory share still meets their
 * deadline are admitted and go first, the earliest deadline before the others; what is left goes to best effort by
 * marginal return, that is, to the job that a GPU brings to its end soonest. A job here has a fixed number of GPUs and is
 * not interrupted, so that growing and shrinking it has no part in this; jobs that are not admitted go on as best effort.
 */
export const elasticflow: GreedyRule = {
  name: 'elasticflow',
  compare(a, b, at) {
    const admitted = Number(canMeet(b, at)) - Number(canMeet(a, at));
    if (admitted !== 0) return admitted;
    return canMeet(a, at)
      ? a.arrivedAt + (a.sloMs ?? 0) - b.arrivedAt - (b.sloMs ?? 0)
      : (a.soloMs ?? Number.MAX_VALUE) - (b.soloMs ?? Number.MAX_VALUE);
  },
  offer: (_, { busy }) => (busy > 0 ? 'it is not free' : { share: 1, cost: 0 }),
};

function canMeet({ arrivedAt, sloMs, soloMs = 0, startMs = 0 }: Task, at: number): boolean {
  return sloMs !== undefined && at + startMs + soloMs <= arrivedAt + sloMs;
}
