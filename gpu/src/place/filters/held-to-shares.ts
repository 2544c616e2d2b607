import { holdsToShares } from '../../view/shares.js';
import type { FactFilter } from './fact-filter.js';

/** A namespace with a bound on its share runs only where processes are held to their shares. */
export const heldToShares: FactFilter = {
  code: 'shares',
  refuses: ({ mode }, { isBounded }) => isBounded && !holdsToShares(mode),
  explain: () => ({ reason: 'nothing holds it to the share that its namespace may have', numbers: {} }),
};
