// Instances that span fragments of several devices (Dilu, section 3.3, principle 2: memory worst fit).
import type { Placement } from '@gpuwhisk/common/gpu';
import { isInUse } from '../view/account-index.js';
import type { PlaceAccount, PlacementRequest } from '../view/account.js';
import type { Ledger } from '../view/ledger.js';
import { gangKey } from '../view/places.js';
import { classAtOrAbove, thousandths } from '../view/shares.js';
import { accountsFor, candidateAt, placementOf } from './candidate.js';
import type { Candidate, PlacementLimits, PlacementStamp } from './candidate.js';
import { fitsShares } from './oversubscription.js';
import type { Oversubscription } from './oversubscription.js';

/** Fragments of one node that hold an instance together, those with the most free memory first. */
export interface Span {
  fragments: readonly Candidate[];
  /** Memory on each of them, MiB. */
  partsMiB: readonly number[];
}

/**
 * The fewest fragments of devices in use on one node that hold the memory of a request together, at most `request.spans`; of
 * nodes with as few the one that keeps the least memory free on them. Each of them gives the request as a limit, too: the
 * parts of a model run in turn. Undefined if there are none, or one holds all of it.
 */
export function spanFor(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  bounds: Oversubscription,
): Span | undefined {
  const { spans = 1, memoryMiB } = request;
  if (spans < 2 || request.gpus > 1 || !(memoryMiB > 0)) return undefined;
  // On each place it is one of several devices, of a memory that is not settled yet.
  const part: PlacementRequest = { ...partOf(request), gpus: 2, memoryMiB: 1 };
  const fragmentAt = (account: PlaceAccount): Candidate | undefined => {
    if (!isInUse(account) || account.place.slice !== undefined) return undefined;
    if (!fitsShares(account, request.share, bounds)) return undefined;
    const candidate = candidateAt(account, part, limits, undefined);
    return candidate?.reclaims === false ? candidate : undefined;
  };
  let best: Fragments | undefined;
  const look = (accounts: readonly PlaceAccount[]): void => {
    const byKind = new Map<string, Candidate[]>();
    for (const account of accounts) {
      const candidate = fragmentAt(account);
      if (candidate === undefined) continue;
      const key = gangKey(account.place);
      const there = byKind.get(key);
      if (there === undefined) byKind.set(key, [candidate]);
      else there.push(candidate);
    }
    for (const there of byKind.values()) {
      const found = fewest(there, memoryMiB, spans);
      if (found !== undefined && (best === undefined || isBetter(found, best))) best = found;
    }
  };
  if (limits.allowed !== undefined) look(accountsFor(ledger, limits));
  else lookAtNodes(ledger, request, bounds, look);
  if (best === undefined) return undefined;
  const partsMiB: number[] = [];
  let left = memoryMiB;
  for (const { account } of best.fragments) {
    const taken = Math.min(account.freeMiB, left);
    partsMiB.push(taken);
    left -= taken;
  }
  return { fragments: best.fragments, partsMiB };
}

/** Looks at the places of each node whose free memory may hold the request: numbers are read before objects. */
function lookAtNodes(
  ledger: Ledger,
  { share, memoryMiB }: PlacementRequest,
  bounds: Oversubscription,
  look: (accounts: readonly PlaceAccount[]) => void,
): void {
  const accounts = ledger.accounts();
  const { freeMiB, requestSum, limitSum } = ledger.sums();
  const mostRequest = thousandths(bounds.omega) - thousandths(share.smRequest);
  const mostLimit = thousandths(bounds.gamma) - thousandths(share.smLimit);
  ledger.nodeIndex().inUse((from, to) => {
    let sumMiB = 0;
    for (let at = from; at < to; at += 1) {
      const limited = limitSum[at] as number;
      if (limited > 0 && limited <= mostLimit && (requestSum[at] as number) <= mostRequest) {
        sumMiB += Math.max(0, freeMiB[at] as number);
      }
    }
    if (sumMiB >= memoryMiB) look(accounts.slice(from, to));
  });
}

/** The placement of a request on the fragments of a span. */
export function spanPlacement(
  { fragments, partsMiB }: Span,
  request: PlacementRequest,
  stamp: PlacementStamp,
): Placement {
  const placement = placementOf(fragments, partOf(request), stamp);
  const share = { ...placement.share, memoryMiB: Math.max(...partsMiB) };
  return { ...placement, share, partsMiB: [...partsMiB] };
}

/** The request to each device: its limit is its request. */
function partOf(request: PlacementRequest): PlacementRequest {
  const { smRequest } = request.share;
  return { ...request, share: { ...request.share, shareClass: classAtOrAbove(smRequest), smLimit: smRequest } };
}

/** Fragments with the memory that they keep free. */
interface Fragments {
  fragments: Candidate[];
  leftMiB: number;
}

function fewest(there: Candidate[], memoryMiB: number, spans: number): Fragments | undefined {
  there.sort(({ account: one }, { account: other }) => other.freeMiB - one.freeMiB || one.order - other.order);
  let sumMiB = 0;
  for (const [at, { account }] of there.slice(0, spans).entries()) {
    sumMiB += account.freeMiB;
    if (sumMiB < memoryMiB) continue;
    return at === 0 ? undefined : { fragments: there.slice(0, at + 1), leftMiB: sumMiB - memoryMiB };
  }
  return undefined;
}

function isBetter(one: Fragments, other: Fragments): boolean {
  return (one.fragments.length - other.fragments.length || one.leftMiB - other.leftMiB) < 0;
}
