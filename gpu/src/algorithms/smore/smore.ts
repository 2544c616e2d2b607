import type { PolicyRecord } from '../../stages/policy-record.js';

/** SMORE (thesis section 3.3), with a guard that it lacks: functions give way where a training job suffers after all. */
export const smore: PolicyRecord = {
  summary:
    'beside training jobs where the predicted degradation of both is within bounds, most use for it first (SMORE)',
  admit: 'latest-start',
  plan: 'by-degradation',
  preempt: 'workload-guard',
  asksPredicted: true,
};
