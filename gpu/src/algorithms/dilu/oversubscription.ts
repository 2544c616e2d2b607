// How much of its SMs a place gives to instances together (Dilu, section 3.3, principle 3).
import { isInUse } from '../../ledger/account-index.js';
import type { ShareSums } from '../../ledger/account.js';
import { thousandths } from '../../ledger/occupancy.js';
import type { Refusal } from '../../stages/place/fact-filters.js';

/** The bounds with Dilu's values: requests are always met, and limits promise half as much again as there is. */
export const oversubscriptionDefaults = {
  /** Ω: the greatest sum of requests, as a fraction of the SMs. */
  omega: 1,
  /** γ: the greatest sum of limits, as a fraction of the SMs. */
  gamma: 1.5,
};
export type Oversubscription = typeof oversubscriptionDefaults;

/** An instance's request and limit, as fractions of the SMs. */
export interface Demand {
  smRequest: number;
  smLimit: number;
}

/**
 * Why the sums leave an instance no room; undefined if they do. A place without instances takes any one, so that a bound
 * below a function's request does not stop the function.
 */
export function overSubscribed(sums: ShareSums, demand: Demand, bounds: Oversubscription): Refusal | undefined {
  const { omega, gamma } = bounds;
  const { requestSum, limitSum } = sums;
  if (fitsShares(sums, demand, bounds)) return undefined;
  if (requestSum + thousandths(demand.smRequest) > thousandths(omega)) {
    const numbers = { requests: requestSum / 1000, request: demand.smRequest, most: omega };
    return { reason: 'its instances request too much', numbers };
  }
  const numbers = { limits: limitSum / 1000, limit: demand.smLimit, most: gamma };
  return { reason: 'its instances have too high limits', numbers };
}

/** Whether the sums leave an instance room. */
export function fitsShares(
  sums: ShareSums,
  { smRequest, smLimit }: Demand,
  { omega, gamma }: Oversubscription,
): boolean {
  if (!isInUse(sums)) return true;
  const { requestSum, limitSum } = sums;
  return (
    requestSum + thousandths(smRequest) <= thousandths(omega) && limitSum + thousandths(smLimit) <= thousandths(gamma)
  );
}
