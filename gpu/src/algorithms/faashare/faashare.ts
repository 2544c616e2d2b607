import type { PolicyRecord } from '../../stages/policy-record.js';

/** FaaShare (section VI: the spatio-temporal priority queue; section VII: the optimised table of quotas). */
export const faashare: PolicyRecord = {
  summary:
    'urgent SLOs first, then the shortest, in sets that fit into memory and that a prediction finds to meet their SLOs (FaaShare)',
  admit: 'by-prediction',
  plan: 'sub-queues',
  settings: { firstSlowdown: 1.35 },
  asksPredicted: true,
};
