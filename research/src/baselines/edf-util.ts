import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** EDF-util of SMORE's comparison (paper section VIII-D; thesis section 5.5.1: the bound is 80 %). */
export const edfUtil: PolicyRecord = {
  summary: 'by deadline, where the use of the training jobs and of the function together is within 80 %',
  admit: 'latest-start',
  plan: 'by-deadline-use',
};
