import type { Bench } from '../bench.js';
import { measureFairness } from './order-fairness.js';
import { measureTimes } from './order-time.js';

/** FaaShare's spatio-temporal queue: what its decisions cost, and what one flooding namespace does to the others. */
export const order: Bench = {
  summary: "FaaShare's queue: time of decisions, fairness between namespaces",
  parts: ['time', 'fairness'],
  run(context) {
    const { parts } = context.options;
    return Promise.resolve([
      ...(parts.includes('time') ? measureTimes(context) : []),
      ...(parts.includes('fairness') ? measureFairness(context) : []),
    ]);
  },
};
