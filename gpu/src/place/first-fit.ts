import type { Place } from './place.js';

/** The first one. */
export const firstFit: Place = () => 0;
