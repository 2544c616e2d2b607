import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** Tasks whose fills sum to at most a GPU share it without MPS percentages. */
export const uncapped: PolicyRecord = {
  summary: 'the shortest first, together as long as their fills sum to a GPU, without a cap on their shares',
  admit: 'before-slo',
  order: 'shortest-first',
  share: 'filling-uncapped',
  place: 'fewest-tasks',
};
