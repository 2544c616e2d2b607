import type { Scale } from './scale.js';

/** Instances come with requests that find none, and go where the invokers remove them. */
export const none: Scale = () => ({ launch: [], retire: [] });
