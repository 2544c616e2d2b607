import type { PolicyRecord } from './policy.js';

/**
 * Dilu (Lv and others, ASPLOS 2025, section 3.3): request and limit by profile, and as few GPUs as these leave. The order is
 * ours, as the paper has none.
 */
export const dilu: PolicyRecord = {
  summary: 'functions that complement each other on few GPUs, within bounds on requests and limits (Dilu)',
  admit: 'before-slo',
  order: 'due-first',
  share: 'dilu',
  place: 'dilu',
};
