import type { Place } from './place.js';

/** Where the fewest run. */
export const fewestTasks: Place = (_, { busy }) => busy;
