import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** FaaShare, section IX-A: PT. */
export const timePriority: PolicyRecord = {
  summary: 'the shortest first, each with the share that it fills',
  admit: 'before-slo',
  order: 'shortest-first',
  share: 'filling',
  place: 'best-fit',
};
