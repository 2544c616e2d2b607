import type { GreedyRule } from './greedy.js';

/**
 * MPS with equal shares: each GPU serves as many tasks at a time as `slots` says, each with the same part of it, first
 * come, first served, to the GPU with the fewest.
 */
export function mpsEqual(slots: number): GreedyRule {
  return {
    name: 'mps-equal',
    compare: (a, b) => a.arrivedAt - b.arrivedAt,
    offer: (_, { clients }) => (clients >= slots ? 'all parts are given away' : { share: 1 / slots, cost: clients }),
  };
}
