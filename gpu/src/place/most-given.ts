import type { Place } from './place.js';

/**
 * An empty GPU; else, for a task with an SLO, where those that run have the least, and for one without where it gets the
 * most (TGS, Wu and others, NSDI 2023: a production job beside the smallest opportunistic one).
 */
export const mostGiven: Place = ({ sloMs }, { residents: [first] }, { share }) => {
  if (first === undefined) return 0;
  return sloMs === undefined ? 2 - share : first.share;
};
