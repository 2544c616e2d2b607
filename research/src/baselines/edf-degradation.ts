import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * ElasticFlow of SMORE's comparison (paper section VIII-D): its order and its greedy choice of the least degradation, with
 * SMORE's admission. `elasticflow` is the system itself, which gives whole GPUs away.
 */
export const edfDegradation: PolicyRecord = {
  summary: 'by deadline, where the least degradation is predicted, within the bounds of training jobs',
  admit: 'latest-start',
  plan: 'by-deadline-degradation',
};
