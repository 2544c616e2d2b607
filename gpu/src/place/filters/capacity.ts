import { neededMiB } from '../../view/account.js';
import type { FactFilter } from './fact-filter.js';

/** Work needs no more memory than the place may give away in all. */
export const capacity: FactFilter = {
  code: 'capacity',
  refuses: (account, work) => account.capacityMiB < neededMiB(work, account),
  explain: (account, work) => ({
    reason: 'too small',
    numbers: { capacityMiB: account.capacityMiB, needMiB: neededMiB(work, account) },
  }),
};
