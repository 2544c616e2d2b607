import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** FaaShare, section IX-A: PM. */
export const memoryPriority: PolicyRecord = {
  summary: 'the least memory first, each with the share that it fills',
  admit: 'before-slo',
  order: 'least-memory-first',
  share: 'filling',
  place: 'best-fit',
};
