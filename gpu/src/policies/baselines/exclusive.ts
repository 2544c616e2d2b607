import type { GreedyRule } from './greedy.js';

/** Whole GPUs, first come, first served: what a device plugin does (FaaShare, section II-D). */
export const exclusive: GreedyRule = {
  name: 'exclusive',
  compare: (a, b) => a.arrivedAt - b.arrivedAt,
  offer: (_, { busy }) => (busy > 0 ? 'it is not free' : { share: 1, cost: 0 }),
};
