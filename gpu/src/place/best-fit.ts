import type { Place } from './place.js';

/** The GPU that keeps the least of its SMs free; GPUs that grant less than the wanted share come last. */
export const bestFit: Place = (_, { load }, { share, lacks }) => (lacks > 0 ? 1 + lacks : 1 - load - share);
