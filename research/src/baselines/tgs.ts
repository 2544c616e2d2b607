import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * TGS (Wu and others, NSDI 2023): production jobs are those with an SLO; on a GPU without one the first opportunistic job
 * takes that part. Memory is not oversubscribed.
 */
export const tgs: PolicyRecord = {
  summary: 'a job with an SLO and one without on a GPU, the second held to what the first leaves',
  admit: 'before-slo',
  order: 'strict-first',
  share: 'left-over',
  place: 'most-given',
};
