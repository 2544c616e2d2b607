import type { PolicyRecord } from '../../stages/policy-record.js';

/**
 * Dilu (Lv and others, ASPLOS 2025): request and limit by profile (section 3.2), as few GPUs as these leave (3.3), and instances
 * that come with load that lasts (3.4.2). The order is
 * ours, as the paper has none.
 */
export const dilu: PolicyRecord = {
  summary: 'functions that complement each other on few GPUs, within bounds on requests and limits (Dilu)',
  admit: 'before-slo',
  order: 'due-first',
  share: 'dilu',
  place: 'dilu',
  scale: 'dilu',
  asksPredicted: true,
};
