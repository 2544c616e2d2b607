import type { PolicyRecord } from '../../stages/policy-record.js';

/** The default: FaaShare's stages, and functions of which nothing is measured share a GPU by `FirstShare` instead of taking turns. */
export const auto: PolicyRecord = {
  summary: 'faashare, with two functions of which nothing is measured on a GPU from their first call',
  admit: 'by-prediction',
  plan: 'sub-queues',
  settings: { firstSlowdown: 1.35, fullSlowdown: 1.35 },
};
