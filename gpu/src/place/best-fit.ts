import type { Place } from './place.js';

/** Where the least is left over; a GPU that can give only less than it should comes after all that have it. */
export const bestFit: Place = (_, { load }, { share, lacks }) => (lacks > 0 ? 1 + lacks : 1 - load - share);
