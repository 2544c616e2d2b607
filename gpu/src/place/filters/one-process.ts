import type { FactFilter } from './fact-filter.js';

/** A device in exclusive mode runs one process at a time. */
export const oneProcess: FactFilter = {
  code: 'exclusive',
  refuses: ({ mode, busy }, _, joined) => mode === 'exclusive' && joined === undefined && busy > 0,
  explain: ({ busy }) => ({ reason: 'it serves one process at a time', numbers: { running: busy } }),
};
