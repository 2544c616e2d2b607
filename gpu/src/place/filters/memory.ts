import { neededMiB } from '../../view/account.js';
import type { FactFilter } from './fact-filter.js';

/** Work that gets a process of its own needs memory for it, of which idle instances give theirs. */
export const memory: FactFilter = {
  code: 'memory',
  // Where none is left at all, work of unknown need has none either.
  refuses: (account, work, joined) =>
    joined === undefined && (account.availableMiB < neededMiB(work, account) || account.availableMiB <= 0),
  explain: (account, work) => ({
    reason: 'too little free memory',
    numbers: { availableMiB: account.availableMiB, needMiB: neededMiB(work, account) },
  }),
};
