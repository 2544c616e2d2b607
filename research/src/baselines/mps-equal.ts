import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** MPS as it is without percentages. */
export const mpsEqual: PolicyRecord = {
  summary: 'two tasks on a GPU, whose parts the hardware makes equal, first come, first served',
  admit: 'before-slo',
  order: 'fifo',
  share: 'unlimited',
  place: 'fewest-tasks',
};
