// Instances that span fragments of several devices (Dilu, section 3.3, principle 2: memory worst fit).
import type { Placement } from '@gpuwhisk/common/gpu';
import { isInUse } from '../../ledger/account-index.js';
import { stayingSums } from '../../ledger/account.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { Occupant } from '../../ledger/occupancy.js';
import { thousandths } from '../../ledger/occupancy.js';
import { classAtOrAbove } from '../../view/shares.js';
import { accountsFor, candidateAt, placementOf, reclaimedAt } from '../../stages/place/candidate.js';
import type { Candidate, PlacementLimits, PlacementStamp } from '../../stages/place/candidate.js';
import { alikeGroups } from '../../stages/place/gangs.js';
import { fitsShares } from './oversubscription.js';
import type { Oversubscription } from './oversubscription.js';

/** Fragments of one node that hold an instance together, those with the most free memory first. */
export interface Span {
  fragments: readonly Candidate[];
  /** Memory on each of them, MiB. */
  partsMiB: readonly number[];
}

/** The devices that fragments may be of: those in use, all of them, or also those where idle instances go for it. */
export type SpanRoom = 'in-use' | 'free' | 'reclaimed';

/** Whether the memory of a request may be split at all. */
function maySpan({ spans = 1, gpus, memoryMiB }: PlacementRequest): boolean {
  return spans > 1 && gpus === 1 && memoryMiB > 0;
}

/**
 * The fewest fragments of devices on one node that hold the memory of a request together, at most `request.spans`; of
 * nodes with as few the one that keeps the least memory free on them. Each of them gives the request as a limit, too: the
 * parts of a model run in turn. Undefined if there are none, or one holds all of it.
 */
export function spanFor(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  bounds: Oversubscription,
  room: SpanRoom,
): Span | undefined {
  if (!maySpan(request)) return undefined;
  const { spans = 1, memoryMiB } = request;
  let best: Fewest | undefined;
  const look = (accounts: readonly PlaceAccount[]): void => {
    const fragments: Fragment[] = [];
    for (const account of accounts) {
      const fragment = fragmentAt(account, request, limits, bounds, room);
      if (fragment !== undefined) fragments.push(fragment);
    }
    for (const there of alikeGroups(fragments, ({ candidate }) => candidate.account.place)) {
      const found = fewest(there, memoryMiB, spans);
      if (found !== undefined && (best === undefined || isBetter(found, best))) best = found;
    }
  };
  if (room === 'in-use' && limits.allowed === undefined) lookAtNodes(ledger, request, bounds, look);
  else look(accountsFor(ledger, limits));
  if (best === undefined) return undefined;
  const sizes = best.fragments.map(({ roomMiB }) => roomMiB);
  return { fragments: best.fragments.map(({ candidate }) => candidate), partsMiB: partsOf(sizes, memoryMiB) };
}

/** An instance of a request's function that idles on several devices, on those that it spans; undefined if there is none. */
export function warmSpanFor(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits): Span | undefined {
  if (!maySpan(request)) return undefined;
  const part = partOf(request);
  for (const { occupants } of ledger.withInstances(request, true)) {
    const gang = occupants.find((one) => isSpanOf(one, part))?.gang ?? [];
    const fragments = gang.flatMap((id) => warmFragmentAt(ledger.account(id), part, gang.length, limits) ?? []);
    if (gang.length === 0 || fragments.length < gang.length) continue;
    const sizes = fragments.map(({ joined }) => joined?.memoryMiB ?? 0);
    if (sizes.reduce((sum, size) => sum + size, 0) < request.memoryMiB) continue;
    return { fragments, partsMiB: partsOf(sizes, request.memoryMiB) };
  }
  return undefined;
}

/** A new instance on fragments of the devices that `limits` allow, whatever their SMs are given to. */
export function spanOf(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
): PlacementChoice {
  const span = spanFor(ledger, request, limits, { omega: Infinity, gamma: Infinity }, 'free');
  if (span !== undefined) return { placement: spanPlacement(span, request, stamp), rejected: [] };
  const what = [...(limits.allowed ?? [])].join(', ');
  return { rejected: [{ what, reason: 'their free memory does not hold it together', numbers: {} }] };
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
  const part = partOf(request);
  // What goes from a device is what its own part lacks there.
  const reclaim = fragments.flatMap((one, at) => reclaimedAt(one, { ...part, memoryMiB: partsMiB[at] ?? 0 }));
  const kept = fragments.map((one) => ({ ...one, reclaims: false }));
  const placement = placementOf(kept, part, stamp);
  const share = { ...placement.share, memoryMiB: Math.max(...partsMiB) };
  return {
    ...placement,
    share,
    partsMiB: [...partsMiB],
    ...(reclaim.length > 0 && { reclaim: [...new Set(reclaim)] }),
  };
}

/** A device that may give a part of its memory. */
interface Fragment {
  candidate: Candidate;
  /** Memory that it may give, MiB. */
  roomMiB: number;
}

interface Fewest {
  fragments: Fragment[];
  leftMiB: number;
}

function fragmentAt(
  account: PlaceAccount,
  request: PlacementRequest,
  limits: PlacementLimits,
  bounds: Oversubscription,
  room: SpanRoom,
): Fragment | undefined {
  const isReclaimed = room === 'reclaimed';
  if (account.place.slice !== undefined || (room === 'in-use' && !isInUse(account))) return undefined;
  if (!fitsShares(isReclaimed ? stayingSums(account.occupants) : account, request.share, bounds)) return undefined;
  // It is one of several devices, of a memory that is not settled yet.
  const part: PlacementRequest = { ...partOf(request), gpus: 2, memoryMiB: 1 };
  const candidate = candidateAt(account, part, limits, undefined);
  if (candidate === undefined || (candidate.reclaims && !isReclaimed)) return undefined;
  const roomMiB = isReclaimed ? account.availableMiB : account.freeMiB;
  return roomMiB > 0 ? { candidate: { ...candidate, reclaims: isReclaimed }, roomMiB } : undefined;
}

/** Whether an occupant is an instance of a request that idles on several devices. */
function isSpanOf(one: Occupant, { action, namespace, subject, share, spans = 1 }: PlacementRequest): boolean {
  const isIdle = one.users === 0 && one.container !== undefined;
  const isOwn = one.action === action && one.namespace === namespace && one.subject === subject;
  return isIdle && isOwn && one.shareClass === share.shareClass && one.gpus > 1 && one.gpus <= spans;
}

function warmFragmentAt(
  account: PlaceAccount | undefined,
  part: PlacementRequest,
  gpus: number,
  limits: PlacementLimits,
): Candidate | undefined {
  if (account === undefined || limits.allowed?.has(account.id) === false) return undefined;
  const joined = account.occupants.find((one) => isSpanOf(one, part));
  return joined && candidateAt(account, { ...part, gpus, memoryMiB: 1 }, limits, joined);
}

/** The request to each device: its limit is its request. */
function partOf(request: PlacementRequest): PlacementRequest {
  const { smRequest } = request.share;
  return { ...request, share: { ...request.share, shareClass: classAtOrAbove(smRequest), smLimit: smRequest } };
}

/** Parts of a memory that fill places of these sizes one after the other, MiB. */
function partsOf(sizesMiB: readonly number[], memoryMiB: number): number[] {
  let left = memoryMiB;
  return sizesMiB.map((size) => {
    const taken = Math.min(size, left);
    left -= taken;
    return taken;
  });
}

function fewest(there: Fragment[], memoryMiB: number, spans: number): Fewest | undefined {
  there.sort(
    (one, other) => other.roomMiB - one.roomMiB || one.candidate.account.order - other.candidate.account.order,
  );
  let sumMiB = 0;
  for (const [at, { roomMiB }] of there.slice(0, spans).entries()) {
    sumMiB += roomMiB;
    if (sumMiB < memoryMiB) continue;
    return at === 0 ? undefined : { fragments: there.slice(0, at + 1), leftMiB: sumMiB - memoryMiB };
  }
  return undefined;
}

function isBetter(one: Fewest, other: Fewest): boolean {
  return (one.fragments.length - other.fragments.length || one.leftMiB - other.leftMiB) < 0;
}
