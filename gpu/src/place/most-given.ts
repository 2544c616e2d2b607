import type { Place } from './place.js';

/**
 * An empty GPU first; then for a task with an SLO the GPU whose resident has the smallest share, and for others the GPU that
 * grants the largest one (TGS, Wu and others, NSDI 2023).
 */
export const mostGiven: Place = ({ sloMs }, { residents: [first] }, { share }) => {
  if (first === undefined) return 0;
  return sloMs === undefined ? 2 - share : first.share;
};
