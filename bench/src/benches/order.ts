import type { Bench } from '../bench.js';
import { measureFairness } from './order-fairness.js';
import { measureTimes } from './order-time.js';

const parts = { time: measureTimes, fairness: measureFairness } as const;

/** FaaShare's spatio-temporal queue: what its decisions cost, and what one flooding namespace does to the others. */
export const order: Bench = {
  summary: "FaaShare's queue: time of decisions, fairness between namespaces",
  parts: Object.keys(parts),
  run(context) {
    const chosen = context.options.parts.length > 0 ? context.options.parts : Object.keys(parts);
    return Promise.resolve(
      Object.entries(parts).flatMap(([name, measure]) => (chosen.includes(name) ? measure(context) : [])),
    );
  },
};
