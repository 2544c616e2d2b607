import type { GreedyRule } from './greedy.js';

/**
 * MPS as it is without percentages: each GPU serves as many tasks at a time as `slots` says, none is held to a part, and
 * the hardware gives all that ask the same; first come, first served, to the GPU with the fewest.
 */
export function mpsEqual(slots: number): GreedyRule {
  return {
    name: 'mps-equal',
    compare: (a, b) => a.arrivedAt - b.arrivedAt,
    offer: (_, { busy }) => (busy >= slots ? 'it has as many as it serves' : { share: 1, cost: busy }),
  };
}
