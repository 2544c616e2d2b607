import { comparing } from './order.js';

/** First come, first served. */
export const fifo = comparing((one, other) => one.arrivedAt - other.arrivedAt);
