import type { Seat } from '../place/place.js';
import { classFractions, fillingShare } from './filling.js';
import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';

/**
 * A GPU takes one task with an SLO, at the share that it can use, and one without, at the share that the first leaves (TGS,
 * Wu and others, NSDI 2023: production and opportunistic jobs). The control loop of TGS would settle at the greatest share
 * class that the other's use of the SMs leaves free. The share cannot be raised when the production job ends, as TGS would,
 * so that a task is refused a GPU that leaves less than half of its use.
 */
export const leftOver: ShareOut = (task, seat) => {
  const [first, second] = seat.residents;
  if (second) return refused('it has a production job and an opportunistic one', { running: seat.busy });
  if (!first) return granted(1);
  if (task.sloMs !== undefined) {
    const isTaken = first.task.sloMs !== undefined;
    return isTaken ? refused('it has a production job', { running: seat.busy }) : granted(1);
  }
  const share = leftBy(seat);
  const least = fillingShare(task) / 2;
  return share < least ? refused('the job there leaves too little', { share, least }) : granted(share);
};

/** The greatest class that the residents leave free; 0 if there is none. */
function leftBy({ residents }: Seat): number {
  const used = residents.reduce((sum, { task, share }) => sum + Math.min(share, task.features?.smUtil ?? 1), 0);
  return classFractions.findLast((fraction) => used + fraction <= 1) ?? 0;
}
