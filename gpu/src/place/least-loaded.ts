import type { Placement, Rejection } from '@gpuwhisk/common/gpu';
import type { AccountColumns, Ledger, PlaceAccount } from '../view/ledger.js';
import type { Occupant } from '../view/occupancy.js';
import { keptForAnother, mostRejections } from '../view/decision.js';
import { neededMiB } from '../view/account.js';
import { gangKey } from '../view/places.js';
import { refusing, refusalOf } from './fact-filters.js';
import { holdsToShares } from '../view/shares.js';
import type { Refusal } from './filters/fact-filter.js';
import { hasUnwanted, instanceFor, reclaimable, unwantedOn } from './instances.js';
import { outrankedBy } from './outranked.js';
import type { PlacementChoice, PlacementRequest } from '../view/placement-request.js';

/** What limits where one activation may go, besides facts of the places. */
export interface PlacementLimits {
  /** Places, by id, that are kept for one that waits for longer. */
  kept: ReadonlySet<string>;
  /** Ids of the places that the request may go to; absent: all. */
  allowed?: ReadonlySet<string>;
  /** Whether a node may be chosen: it is heard of, also since it has refused the activation. */
  isOpen(invoker: string): boolean;
  /** `first`: the first place found among those that are loaded least, to within a twentieth; absent: the best one. */
  fit?: 'best' | 'first';
  /** It gets an instance of its own, whatever idles there. */
  isNew?: boolean;
}

/** What a placement is stamped with. */
export interface PlacementStamp {
  /** Of the decider's lease. */
  epoch: number;
  /** Epoch ms. */
  at: number;
}

/** A place that would do. */
interface Candidate {
  account: PlaceAccount;
  /** The instance that the request would run in. */
  joined: Occupant | undefined;
  /** The place would have given more than its SMs away. */
  isFull: boolean;
  /** Idle instances have to go. */
  reclaims: boolean;
}

/**
 * The place with the least share given away of those with room for the memory, an instance of the function that idles
 * there before all others while the SMs suffice. Idle instances of other functions are in nobody's way: they are named
 * to be removed where their memory is needed. A function that fits nowhere is refused with what places lack.
 */
export function placeLeastLoaded(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
): PlacementChoice {
  const chosen = request.gpus > 1 ? gangFor(ledger, request, limits) : one(bestOf(ledger, request, limits));
  const rejected = alternatives(ledger, request, limits, chosen);
  if (chosen === undefined) return { rejected };
  const { joined } = chosen[0]!;
  return {
    placement: placementOf(chosen, request, stamp),
    ...(joined !== undefined && { reuses: joined.id }),
    rejected,
  };
}

/** An instance that runs a batch of the function while the next one gathers; nothing is chosen where there is none. */
export function joinBatch(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
): PlacementChoice {
  let best: Candidate | undefined;
  for (const account of request.batch > 1 ? ledger.withInstances(request, false) : []) {
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined || joined.users === 0 || limits.allowed?.has(account.id) === false) continue;
    const candidate = candidateAt(account, request, limits, joined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  if (best?.joined === undefined) return { rejected: [] };
  return { placement: placementOf([best], request, stamp), reuses: best.joined.id, rejected: [] };
}

/** The very places that a policy chose, in an instance that is there if there is one; refused with what one of them lacks. */
export function bindTo(
  ledger: Ledger,
  request: PlacementRequest,
  ids: readonly string[],
  isOpen: PlacementLimits['isOpen'],
  stamp: PlacementStamp,
): PlacementChoice {
  return placeLeastLoaded(ledger, request, { kept: new Set(), allowed: new Set(ids), isOpen }, stamp);
}

function one(candidate: Candidate | undefined): Candidate[] | undefined {
  return candidate && [candidate];
}

/** The places that a request may be considered for. */
function accountsFor(ledger: Ledger, { allowed }: PlacementLimits): readonly PlaceAccount[] {
  if (allowed === undefined) return ledger.accounts();
  return Array.from(allowed, (id) => ledger.account(id)).filter((account) => account !== undefined);
}

/** The best candidate for work of one device. */
function bestOf(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits): Candidate | undefined {
  // Instances first: while the SMs suffice, no other place is better.
  let best: Candidate | undefined;
  for (const account of limits.isNew === true ? [] : ledger.withInstances(request, request.batch === 1)) {
    if (limits.allowed?.has(account.id) === false) continue;
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined) continue;
    const candidate = candidateAt(account, request, limits, joined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  if (best?.isFull === false) return best;
  const first = limits.fit === 'first' && limits.allowed === undefined ? firstOf(ledger, request, limits) : undefined;
  if (first !== undefined) return first;
  const accounts = ledger.accounts();
  const sums = ledger.sums();
  for (const order of ordersOf(ledger, limits) ?? sums.load.keys()) {
    if (cannotBeat(sums, order, request, best)) continue;
    const candidate = candidateAt(accounts[order]!, request, limits, undefined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  return best;
}

/** The positions of the places that it may go to; undefined: all. */
function ordersOf(ledger: Ledger, limits: PlacementLimits): number[] | undefined {
  return limits.allowed && accountsFor(ledger, limits).map(({ order }) => order);
}

/** Places that are looked at for the first fit, at most, before all are. */
const mostTries = 64;

/** The first place of those loaded least that has SMs and memory without removing anything. */
function firstOf(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits): Candidate | undefined {
  const { share, memoryMiB } = request;
  let tries = 0;
  for (const accounts of ledger.byLoad) {
    for (const account of accounts) {
      tries += 1;
      if (tries > mostTries) return undefined;
      if (account.freeMiB < memoryMiB || account.load + share.smRequest > 1) continue;
      const candidate = candidateAt(account, request, limits, undefined);
      if (candidate?.reclaims === false) return candidate;
    }
  }
  return undefined;
}

/** Whether a new instance on a place is certainly no better than `best`, by numbers alone. */
function cannotBeat(
  { load, freeMiB, availableMiB }: AccountColumns,
  order: number,
  { share, memoryMiB }: PlacementRequest,
  best: Candidate | undefined,
): boolean {
  if (availableMiB[order]! < memoryMiB) return true;
  if (best === undefined) return false;
  const isFull = load[order]! + share.smRequest > 1;
  if (isFull !== best.isFull) return isFull;
  if (best.joined !== undefined) return true;
  if (best.reclaims) return false;
  const { account } = best;
  const lacks = freeMiB[order]! < memoryMiB || load[order]! > account.load;
  return lacks || (load[order] === account.load && freeMiB[order]! < account.freeMiB);
}

/** A place with its facts; undefined if one of them refuses, or it may not be chosen. */
function candidateAt(
  account: PlaceAccount,
  request: PlacementRequest,
  { kept, isOpen }: PlacementLimits,
  joined: Occupant | undefined,
): Candidate | undefined {
  if (!isOpen(account.place.node.invoker) || kept.has(account.id)) return undefined;
  return refusing(account, request, joined) === undefined ? candidateOf(account, request, joined) : undefined;
}

function candidateOf(account: PlaceAccount, request: PlacementRequest, joined: Occupant | undefined): Candidate {
  const lacks = joined === undefined && account.freeMiB < neededMiB(request, account);
  return {
    account,
    joined,
    isFull: account.load + request.share.smRequest > 1,
    reclaims: lacks || hasUnwanted(account, request, joined),
  };
}

function isBetter(candidate: Candidate, best: Candidate | undefined): boolean {
  return best === undefined || compare(candidate, best) < 0;
}

/** Below 0 if `a` goes before `b`. */
function compare(a: Candidate, b: Candidate): number {
  return (
    Number(a.isFull) - Number(b.isFull) ||
    Number(a.joined === undefined) - Number(b.joined === undefined) ||
    Number(a.reclaims) - Number(b.reclaims) ||
    a.account.load - b.account.load ||
    b.account.freeMiB - a.account.freeMiB ||
    a.account.order - b.account.order
  );
}

/** Places for work of several devices: of an instance that idles on all of its own, else the best that are alike. */
function gangFor(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits): Candidate[] | undefined {
  for (const reuses of limits.isNew === true ? [false] : [true, false]) {
    const candidates: Candidate[] = [];
    for (const account of accountsFor(ledger, limits)) {
      const joined = reuses ? instanceFor(account.occupants, request) : undefined;
      const candidate = candidateAt(account, request, limits, joined);
      if (candidate !== undefined) candidates.push(candidate);
    }
    const gang = reuses ? idleGang(candidates, request.gpus) : alike(candidates.sort(compare), request.gpus);
    if (gang !== undefined) return gang;
  }
  return undefined;
}

/** The candidates that are all devices of one instance. */
function idleGang(candidates: readonly Candidate[], gpus: number): Candidate[] | undefined {
  for (const { joined } of candidates) {
    if (joined === undefined) continue;
    const gang = candidates.filter((other) => other.joined?.id === joined.id);
    if (gang.length === gpus) return gang;
  }
  return undefined;
}

/** The first candidates that are alike and on one node, as many as are needed. */
function alike(candidates: readonly Candidate[], gpus: number): Candidate[] | undefined {
  for (const { account } of candidates) {
    const gang = candidates.filter((other) => gangKey(other.account.place) === gangKey(account.place));
    if (gang.length >= gpus) return gang.slice(0, gpus);
  }
  return undefined;
}

function placementOf(chosen: readonly Candidate[], request: PlacementRequest, stamp: PlacementStamp): Placement {
  const { account, joined } = chosen[0]!;
  const { node, slice, device } = account.place;
  const placement: Placement = {
    invoker: node.invoker,
    devices: chosen.map((candidate) => candidate.account.place.device.uuid),
    share: request.memoryMiB > 0 ? request.share : { ...request.share, memoryMiB: account.capacityMiB },
    at: stamp.at,
    epoch: stamp.epoch,
    version: node.version,
  };
  if (slice !== undefined) placement.slice = slice.uuid;
  if (chosen.some(({ reclaims }) => reclaims)) {
    placement.reclaim = [...new Set(chosen.flatMap((candidate) => reclaimedAt(candidate, request)))];
  }
  if (joined !== undefined && joined.users > 0) placement.joins = true;
  if (device.simulated) placement.simulated = true;
  return placement;
}

/** The containers that go from a place. */
function reclaimedAt({ account, joined, reclaims }: Candidate, request: PlacementRequest): string[] {
  if (!reclaims) return [];
  const unwanted = unwantedOn(account, request, joined);
  const lackingMiB = neededMiB(request, account) - account.freeMiB;
  const gone = joined === undefined ? reclaimable(account.occupants, unwanted, lackingMiB) : unwanted;
  return gone.flatMap(({ container }) => container ?? []);
}

/**
 * Why the places that were not chosen were not: first those that would have done, by their rank, then others. Of a large
 * cluster only the first places are looked at.
 */
function alternatives(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  chosen: readonly Candidate[] | undefined,
): Rejection[] {
  const able: Candidate[] = [];
  const refused: Rejection[] = [];
  const accounts = looking(ledger, limits);
  for (let order = 0, looked = 0; order < accounts.length && looked < mostRejections; order += 1) {
    const account = accounts[order]!;
    if (!limits.isOpen(account.place.node.invoker)) continue;
    if (chosen?.some((candidate) => candidate.account === account)) continue;
    looked += 1;
    const joined = limits.isNew === true ? undefined : instanceFor(account.occupants, request);
    const refusal = refusalBy(limits, account) ?? refusalOf(account, request, joined);
    if (refusal === undefined) able.push(candidateOf(account, request, joined));
    else refused.push({ what: account.id, reason: refusal.reason, numbers: refusal.numbers });
  }
  const rejected: Rejection[] = [];
  for (const one of able.sort(compare)) rejected.push({ what: one.account.id, ...whyNot(one, chosen, request) });
  for (const one of refused) rejected.push(one);
  return rejected;
}

/** What decided against a place that would do. */
function whyNot(one: Candidate, chosen: readonly Candidate[] | undefined, { gpus }: PlacementRequest): Refusal {
  const last = chosen?.at(-1);
  const { load, freeMiB } = one.account;
  const isBefore = last !== undefined && compare(one, last) < 0;
  if (last === undefined || (isBefore && gpus > 1)) {
    return { reason: `${gpus} alike are needed on one node`, numbers: { load, freeMiB } };
  }
  return outrankedBy(last, one, isBefore);
}

/** The places that alternatives are taken from: first those that the request may go to. */
function looking(ledger: Ledger, limits: PlacementLimits): readonly PlaceAccount[] {
  const accounts = ledger.accounts();
  if (limits.allowed === undefined) return accounts;
  return [...new Set([...accountsFor(ledger, limits), ...accounts.slice(0, mostRejections)])];
}

const notAllowed: Refusal = { reason: 'it may not run there', numbers: {} };

/** Why a place may not be chosen though facts would let it; undefined if it may. */
function refusalBy({ allowed, kept }: PlacementLimits, { id }: PlaceAccount): Refusal | undefined {
  if (allowed?.has(id) === false) return notAllowed;
  return kept.has(id) ? keptForAnother : undefined;
}

/** The places to keep for a request that nothing can be found for: those that have most to give of what could serve it. */
export function placesToKeep(ledger: Ledger, request: PlacementRequest, { kept, isOpen }: PlacementLimits): string[] {
  const could: { account: PlaceAccount; leftMiB: number }[] = [];
  for (const account of ledger.accounts()) {
    if (!isOpen(account.place.node.invoker) || kept.has(account.id)) continue;
    if (account.health?.state !== 'healthy' || account.capacityMiB < request.memoryMiB) continue;
    if (request.gpus > 1 && account.place.slice !== undefined) continue;
    if (request.isBounded && !holdsToShares(account.mode)) continue;
    const busyMiB = account.occupants.reduce((sum, { users, memoryMiB }) => sum + (users > 0 ? memoryMiB : 0), 0);
    could.push({ account, leftMiB: account.capacityMiB - account.foreignMiB - busyMiB });
  }
  could.sort((one, other) => other.leftMiB - one.leftMiB);
  for (const { account } of could) {
    const gang = could.filter((other) => gangKey(other.account.place) === gangKey(account.place));
    if (gang.length >= request.gpus) return gang.slice(0, request.gpus).map((other) => other.account.id);
  }
  return [];
}
