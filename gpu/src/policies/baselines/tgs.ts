import type { Task } from '../policy.js';
import type { GreedyRule, Seat } from './greedy.js';
import { classFractions, fillingShare } from './solo-time.js';

/**
 * TGS (Wu and others, NSDI 2023): a GPU has at most one production job, which gets what it can use, and one
 * opportunistic job beside it, whose rate is held to what the first leaves. Production jobs are those with an SLO; on a
 * GPU without one the first opportunistic job takes that part. The rate that its control loop would settle at is the
 * greatest share class that the other's use of the SMs leaves free. A share cannot be raised later, as TGS would when
 * the production job ends, so that nothing is put where it would have less than half of what it uses. Memory is not
 * oversubscribed.
 */
export const tgs: GreedyRule = {
  name: 'tgs',
  compare: (a, b) => Number(isProduction(b)) - Number(isProduction(a)),
  offer(task, seat) {
    const [first, second] = seat.residents;
    if (second) return 'it has a production job and an opportunistic one';
    if (!first) return { share: 1, cost: 0 };
    if (isProduction(task)) {
      return isProduction(first.task) ? 'it has a production job' : { share: 1, cost: first.share };
    }
    const share = leftBy(seat);
    return share < fillingShare(task) / 2 ? 'the job there leaves too little' : { share, cost: 2 - share };
  },
};

function isProduction({ sloMs }: Task): boolean {
  return sloMs !== undefined;
}

/** The greatest class that whoever is there leaves free; 0 where that is none. */
function leftBy({ residents }: Seat): number {
  const used = residents.reduce((sum, { task, share }) => sum + Math.min(share, task.features?.smUtil ?? 1), 0);
  return classFractions.findLast((fraction) => used + fraction <= 1) ?? 0;
}
