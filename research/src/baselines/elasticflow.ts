import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * ElasticFlow (Gu and others, ASPLOS 2023): whole GPUs only; jobs whose minimum satisfactory share still meets their
 * deadline are admitted and go first. A job here has a fixed number of GPUs and is not interrupted, so that growing and
 * shrinking it has no part in this; jobs that are not admitted go on as best effort.
 */
export const elasticflow: PolicyRecord = {
  summary: 'whole GPUs, by deadline, then the shortest',
  admit: 'before-slo',
  order: 'meetable-first',
  share: 'whole',
  place: 'first-fit',
};
