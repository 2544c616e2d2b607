import type { Seat } from '../place/place.js';
import { classFractions, fillingShare } from './filling.js';
import { granted } from './share.js';
import type { ShareOut } from './share.js';

/**
 * At most one task with an SLO on a GPU, which gets what it can use, and one without, whose rate is held to what the first
 * leaves (TGS, Wu and others, NSDI 2023: production and opportunistic jobs). The rate that TGS' control loop would settle at
 * is the greatest share class that the other's use of the SMs leaves free. It cannot be raised later, as TGS would when the
 * production job ends, so that nothing is put where it would have less than half of what it uses.
 */
export const leftOver: ShareOut = (task, seat) => {
  const [first, second] = seat.residents;
  if (second) return 'it has a production job and an opportunistic one';
  if (!first) return granted(1);
  if (task.sloMs !== undefined) return first.task.sloMs === undefined ? granted(1) : 'it has a production job';
  const share = leftBy(seat);
  return share < fillingShare(task) / 2 ? 'the job there leaves too little' : granted(share);
};

/** The greatest class that whoever is there leaves free; 0 where that is none. */
function leftBy({ residents }: Seat): number {
  const used = residents.reduce((sum, { task, share }) => sum + Math.min(share, task.features?.smUtil ?? 1), 0);
  return classFractions.findLast((fraction) => used + fraction <= 1) ?? 0;
}
