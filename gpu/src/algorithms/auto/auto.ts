import type { PolicyRecord } from '../../stages/policy-record.js';

/** The default: FaaShare's stages, and functions that are known to fill a GPU are tried together as unknown ones are. */
export const auto: PolicyRecord = {
  summary: 'faashare, with best-effort functions tried together whatever they are known to fill',
  admit: 'by-prediction',
  plan: 'sub-queues',
  settings: { firstSlowdown: 1.35, fullSlowdown: 1.35 },
  asksPredicted: true,
};
