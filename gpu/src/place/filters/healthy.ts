import type { FactFilter } from './fact-filter.js';

/** Work is put on healthy devices only: none that is cordoned, drained, offline or unheard of. */
export const healthy: FactFilter = {
  code: 'health',
  refuses: ({ health }) => health?.state !== 'healthy',
  explain: ({ health }) => ({
    reason:
      health === undefined
        ? 'nothing is known of it'
        : [health.state, health.reasons.join('; ')].filter(Boolean).join(': '),
    numbers: {},
  }),
};
