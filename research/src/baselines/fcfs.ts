import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** FaaShare, figure 2: the default. */
export const fcfs: PolicyRecord = {
  summary: 'first come, first served, each with the share that it fills',
  admit: 'before-slo',
  order: 'fifo',
  share: 'filling',
  place: 'best-fit',
};
