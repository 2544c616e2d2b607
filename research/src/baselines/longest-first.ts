import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** Longest processing time first (Graham, 1969), which bounds the makespan of a batch; the mean completion time suffers. */
export const longestFirst: PolicyRecord = {
  summary: 'the longest first, each with the share that it fills',
  admit: 'before-slo',
  order: 'longest-first',
  share: 'filling',
  place: 'best-fit',
};
