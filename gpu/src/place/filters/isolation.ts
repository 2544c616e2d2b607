import type { Account, Work } from '../../view/account.js';
import { mayShare } from '../isolation.js';
import type { Tenant } from '../../view/account.js';
import type { FactFilter } from './fact-filter.js';

function others({ mode, staying }: Account, work: Work): Tenant[] {
  return staying.filter((one) => !mayShare(mode, one, work));
}

/** Work is put beside nobody whom its isolation, theirs or the device's mode forbids. */
export const isolation: FactFilter = {
  code: 'isolation',
  refuses({ mode, staying }, work, joined) {
    for (const one of staying) if (one !== joined && !mayShare(mode, one, work)) return true;
    return false;
  },
  explain: (account, work) => ({
    reason: 'isolation: it is shared with others',
    numbers: { others: others(account, work).length },
  }),
};
