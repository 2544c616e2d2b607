import { neededMiB } from '../view/account.js';
import { fullness, usedMiB } from '../view/account-index.js';
import type { Ledger } from '../view/ledger.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../view/account.js';
import { thousandths } from '../view/shares.js';
import {
  alternativesOf,
  choiceOf,
  rejectionsOf,
  accountsFor,
  alike,
  candidateAt,
  placementOf,
  hasUnwanted,
} from './candidate.js';
import type { Explanation, Candidate, PlacementLimits, PlacementStamp, Ranked } from './candidate.js';
import type { Refusal } from './fact-filters.js';

/** How much of its SMs a place may give to instances together (Dilu, section 3.3, principle 3). */
export interface Oversubscription {
  /** Ω: the greatest sum of requests, as a fraction of the SMs. */
  requests: number;
  /** γ: the greatest sum of limits, as a fraction of the SMs. */
  limits: number;
}

/** Dilu's values (section 3.3): requests are always met, and limits promise half as much again as there is. */
export const conservative: Oversubscription = { requests: 1, limits: 1.5 };

/** Sums of a place that best fit goes by. */
type Sums = Ranked & Pick<PlaceAccount, 'requestSum' | 'limitSum'>;

/**
 * A place for a new instance by best fit (Dilu, section 3.3, principle 2): of the places where the sums of request and limit
 * stay within `bounds` and the memory is free, the one that is fullest afterwards; of equally full ones the first. Idle
 * instances count and are not removed. Work of several devices gets the fullest ones of a node that are alike.
 */
export function placeTightest(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
  bounds: Oversubscription = conservative,
): PlacementChoice {
  const chosen = chosenFor(ledger, request, limits, bounds);
  const alternatives = alternativesOf(ledger, request, { ...limits, isNew: true }, chosen);
  const chosenSum = chosen?.at(-1)?.account.requestSum;
  const chosenRequests = chosenSum === undefined ? undefined : chosenSum / 1000;
  const explanation: Explanation = {
    why({ account: { requestSum, freeMiB } }) {
      const numbers = { requests: requestSum / 1000, freeMiB };
      return chosenRequests === undefined
        ? { reason: `${request.gpus} alike are needed on one node`, numbers }
        : { reason: 'the chosen one is fuller', numbers: { ...numbers, chosenRequests } };
    },
    refuses: (one) => refusalBy(bounds, one, request),
    compare: (one, other) => compareFullness(one, other, request),
  };
  return choiceOf(chosen && placementOf(chosen, request, stamp), undefined, alternatives, (passed) =>
    rejectionsOf(passed, request, explanation),
  );
}

function chosenFor(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  bounds: Oversubscription,
): Candidate[] | undefined {
  const candidates: Candidate[] = [];
  const accepts = (account: PlaceAccount): boolean => {
    if (!fits(bounds, account, request) || limits.allowed?.has(account.id) === false) return false;
    const candidate = candidateAt(account, request, limits, undefined);
    if (candidate === undefined || candidate.reclaims) return false;
    candidates.push(candidate);
    return true;
  };
  const fuller = (one: Candidate, other: Candidate): number => compareFullness(one.account, other.account, request);
  if (request.gpus > 1) {
    for (const account of accountsFor(ledger, limits)) accepts(account);
    return alike(candidates.sort(fuller), request.gpus);
  }
  const requestSum = thousandths(bounds.requests) - thousandths(request.share.smRequest);
  const most = (capacityMiB: number): { requestSum: number; usedMiB: number } => ({
    requestSum,
    usedMiB: capacityMiB - neededMiB(request, { capacityMiB }),
  });
  ledger.fullestFirst().find(most, accepts);
  const [best] = candidates.sort(fuller);
  return best && [best];
}

/** By sums and memory alone. */
function fits(
  bounds: Oversubscription,
  account: Pick<Sums, 'requestSum' | 'limitSum' | 'freeMiB' | 'capacityMiB'>,
  request: PlacementRequest,
): boolean {
  const { smRequest, smLimit } = request.share;
  return (
    account.requestSum + thousandths(smRequest) <= thousandths(bounds.requests) &&
    account.limitSum + thousandths(smLimit) <= thousandths(bounds.limits) &&
    account.freeMiB >= neededMiB(request, account)
  );
}

/** Below 0 if `a` is fuller than `b` once the request is there. */
function compareFullness(a: Sums, b: Sums, request: PlacementRequest): number {
  // Multiplied by the other's capacity, both stay integers.
  return fullnessWith(b, request) * a.capacityMiB - fullnessWith(a, request) * b.capacityMiB || a.order - b.order;
}

function fullnessWith(account: Sums, request: PlacementRequest): number {
  const requestSum = account.requestSum + thousandths(request.share.smRequest);
  return fullness({ requestSum, usedMiB: usedMiB(account) + neededMiB(request, account) }, account.capacityMiB);
}

/** Why a place that facts allow cannot take the request; undefined if it can. */
function refusalBy(bounds: Oversubscription, place: Sums, request: PlacementRequest): Refusal | undefined {
  const { requestSum, limitSum, freeMiB } = place;
  const { smRequest, smLimit } = request.share;
  const needMiB = neededMiB(request, place);
  if (requestSum + thousandths(smRequest) > thousandths(bounds.requests)) {
    return {
      reason: 'its instances request too much',
      numbers: { requests: requestSum / 1000, most: bounds.requests },
    };
  }
  if (limitSum + thousandths(smLimit) > thousandths(bounds.limits)) {
    return { reason: 'its instances have too high limits', numbers: { limits: limitSum / 1000, most: bounds.limits } };
  }
  if (freeMiB < needMiB)
    return { reason: 'too little free memory beside idle instances', numbers: { freeMiB, needMiB } };
  return hasUnwanted(place, request, undefined)
    ? { reason: 'isolation: instances idle there', numbers: {} }
    : undefined;
}
