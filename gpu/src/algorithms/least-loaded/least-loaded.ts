import type { PolicyRecord } from '../../stages/policy-record.js';

/** Nothing is predicted, and nothing learned but which sets of functions lose together. */
export const leastLoaded: PolicyRecord = {
  summary: 'the earliest deadline first, to the GPU with the least share given away',
  admit: 'before-slo',
  plan: 'least-loaded',
  needsNoProfiles: true,
  takesAsTheyCome: true,
  asksPredicted: true,
};
