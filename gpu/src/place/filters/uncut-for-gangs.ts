import type { FactFilter } from './fact-filter.js';

/** Work of several devices takes none that is cut into slices. */
export const uncutForGangs: FactFilter = {
  code: 'slices',
  refuses: ({ mode }, { gpus }) => gpus > 1 && mode === 'mig',
  explain: () => ({ reason: 'it is cut into slices', numbers: {} }),
};
