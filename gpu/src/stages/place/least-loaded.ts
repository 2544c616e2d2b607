/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are those of the ledger: each is an index of its accounts and their columns */
import type { AccountColumns } from '../../ledger/account-index.js';
import type { Ledger } from '../../ledger/ledger.js';
import { leftByRunsMiB, PastAccount } from '../../ledger/account.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import { holdsToShares } from '../../view/shares.js';
import {
  alternativesOf,
  choiceOf,
  rejectionsOf,
  accountsFor,
  alike,
  candidateAt,
  compare,
  idleGang,
  isIdle,
  isBetter,
  placementOf,
  instanceFor,
  waitIn,
} from './candidate.js';
import type { Alternative, Candidate, PlacementLimits, PlacementStamp, Ranked } from './candidate.js';
import type { Refusal } from './fact-filters.js';
import { alikeGroups, gangOf } from './gangs.js';

export type { PlacementLimits, PlacementStamp } from './candidate.js';

/**
 * The place with the least share given away of those with room for the memory, an instance of the function that idles
 * there before all others while the SMs suffice. Idle instances of other functions do not count: they are named
 * to be removed where their memory is needed. A function that fits nowhere is refused with what places lack.
 */
export function placeLeastLoaded(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
): PlacementChoice {
  const chosen = request.gpus > 1 ? gangFor(ledger, request, limits) : one(bestOf(ledger, request, limits));
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  const last = chosen?.at(-1);
  // As it is now: reasons are made when they are read, and its account goes on.
  const seen = last && {
    account: new PastAccount<Refusal>(last.account, last.joined, undefined),
    joined: last.joined,
    isFull: last.isFull,
    reclaims: last.reclaims,
  };
  return choiceOf(chosen && placementOf(chosen, request, stamp), chosen?.[0]?.joined?.id, alternatives, (passed) =>
    rejectionsOf(passed, request, { why: (one) => whyNot(one, seen, request) }),
  );
}

/**
 * An instance that runs a batch of the function while the next one gathers; nothing is chosen where there is none, or where
 * another one idles.
 */
export function joinBatch(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
): PlacementChoice {
  let best: Candidate | undefined;
  for (const account of request.batch > 1 ? ledger.withInstances(request, false) : []) {
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined || limits.allowed?.has(account.id) === false) continue;
    const candidate = candidateAt(account, request, limits, joined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  if (best?.joined === undefined || isIdle(best.joined)) return { rejected: [] };
  return { placement: placementOf([best], request, stamp), reuses: best.joined.id, rejected: [] };
}

/** The very places that a policy chose, in an instance that is there if there is one; refused with what one of them lacks. */
export function bindTo(
  ledger: Ledger,
  request: PlacementRequest,
  { ids, isOpen, isNew = false }: { ids: readonly string[] } & Pick<PlacementLimits, 'isOpen' | 'isNew'>,
  stamp: PlacementStamp,
): PlacementChoice {
  return placeLeastLoaded(ledger, request, { kept: new Set(), allowed: new Set(ids), isOpen, isNew }, stamp);
}

function one(candidate: Candidate | undefined): Candidate[] | undefined {
  return candidate && [candidate];
}

/** The best candidate for work of one device. */
function bestOf(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits): Candidate | undefined {
  // Instances first: while the SMs suffice, no other place is better.
  let best: Candidate | undefined;
  for (const account of limits.isNew === true ? [] : ledger.withInstances(request, request.batch === 1)) {
    if (limits.allowed?.has(account.id) === false) continue;
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined) continue;
    // Of instances that gather a batch the one with the fewest requests is best, and numbers of places do not tell it.
    if (best !== undefined && request.batch === 1 && isWorse(account, request, best)) continue;
    const candidate = candidateAt(account, request, limits, joined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  if (best?.isFull === false) return best;
  const first = limits.fit === 'first' && limits.allowed === undefined ? firstOf(ledger, request, limits) : undefined;
  if (first !== undefined) return first;
  const accounts = ledger.accounts();
  const sums = ledger.sums();
  const orders = limits.allowed && accountsFor(ledger, limits).map(({ order }) => order);
  const count = orders?.length ?? accounts.length;
  // The place that is best by numbers is tried first, so that few others are tried at all.
  let likely = -1;
  for (let at = 0; at < count; at += 1) {
    const order = orders === undefined ? at : orders[at]!;
    if (likely < 0 ? sums.availableMiB[order]! >= request.memoryMiB : isLikelier(sums, order, likely, request)) {
      likely = order;
    }
  }
  const tried = likely < 0 ? undefined : candidateAt(accounts[likely]!, request, limits, undefined);
  if (tried !== undefined && isBetter(tried, best)) best = tried;
  // No place is better than its numbers say: the others are looked at only if this one is worse, or of unknown need.
  const isAsLikely = tried !== undefined && tried.reclaims === sums.freeMiB[likely]! < request.memoryMiB;
  if (isAsLikely && orders === undefined && request.memoryMiB > 0) return best;
  for (let at = 0; at < count; at += 1) {
    const order = orders === undefined ? at : orders[at]!;
    if (cannotBeat(sums, order, request, best)) continue;
    const candidate = candidateAt(accounts[order]!, request, limits, undefined);
    if (candidate !== undefined && isBetter(candidate, best)) best = candidate;
  }
  return best;
}

/** Whether a new instance is better on place `order` than on place `other`, by numbers alone. */
function isLikelier(
  { load, freeMiB, availableMiB }: AccountColumns,
  order: number,
  other: number,
  { share, memoryMiB }: PlacementRequest,
): boolean {
  if (availableMiB[order]! < memoryMiB) return false;
  const isFull = load[order]! + share.smRequest > 1;
  if (isFull !== load[other]! + share.smRequest > 1) return !isFull;
  const lacks = freeMiB[order]! < memoryMiB;
  if (lacks !== freeMiB[other]! < memoryMiB) return !lacks;
  return load[order]! < load[other]! || (load[order] === load[other] && freeMiB[order]! > freeMiB[other]!);
}

/** Whether an instance on a place is certainly no better than `best`, another instance, by numbers alone. */
function isWorse({ load, freeMiB }: PlaceAccount, { share }: PlacementRequest, best: Candidate): boolean {
  const isFull = load + share.smRequest > 1;
  if (isFull !== best.isFull) return isFull;
  if (best.reclaims) return false;
  return load > best.account.load || (load === best.account.load && freeMiB < best.account.freeMiB);
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
  const { account, reclaims } = best;
  const lacks = freeMiB[order]! < memoryMiB;
  if (lacks !== reclaims) return lacks;
  if (load[order] !== account.load) return load[order]! > account.load;
  return freeMiB[order] === account.freeMiB ? order >= account.order : freeMiB[order]! < account.freeMiB;
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

/** The reason against a place that would do; `last`: the place that was chosen last, if any. */
function whyNot(
  one: Candidate<Alternative>,
  last: Candidate<Alternative> | undefined,
  { gpus }: PlacementRequest,
): Refusal {
  const { load, freeMiB } = one.account;
  const isBefore = last !== undefined && compare(one, last) < 0;
  if (last === undefined || (isBefore && gpus > 1)) {
    return { reason: `${gpus} alike are needed on one node`, numbers: { load, freeMiB } };
  }
  return outrankedBy(last, one, isBefore);
}

/** The places to keep for a request that nothing can be found for: those that have most to give of what could serve it. */
export function placesToKeep(ledger: Ledger, request: PlacementRequest, { kept, isOpen }: PlacementLimits): string[] {
  const could: { account: PlaceAccount; leftMiB: number }[] = [];
  for (const account of ledger.accounts()) {
    if (!isOpen(account.place.node.invoker) || kept.has(account.id)) continue;
    if (account.health?.state !== 'healthy') continue;
    if (request.gpus > 1 && account.place.slice !== undefined) continue;
    if (request.isBounded && !holdsToShares(account.mode)) continue;
    could.push({ account, leftMiB: leftByRunsMiB(account) });
  }
  could.sort((one, other) => other.leftMiB - one.leftMiB);
  const whole = could.filter(({ account }) => !(account.capacityMiB < request.memoryMiB));
  if (whole.length === 0) return partsToKeep(could, request);
  return (gangOf(whole, request.gpus, ({ account }) => account.place) ?? []).map(({ account }) => account.id);
}

/** The same of devices that a request may span, where none holds it alone. `could`: those with most to give first. */
function partsToKeep(
  could: readonly { account: PlaceAccount }[],
  { spans = 1, gpus, memoryMiB }: PlacementRequest,
): string[] {
  if (spans < 2 || gpus > 1) return [];
  const uncut = could.flatMap(({ account }) => (account.place.slice === undefined ? [account] : []));
  const groups = alikeGroups(uncut, ({ place }) => place).map((group) => group.slice(0, spans));
  const enough = groups.find((group) => group.reduce((sum, { capacityMiB }) => sum + capacityMiB, 0) >= memoryMiB);
  return (enough ?? []).map(({ id }) => id);
}

/**
 * The rule by which the least-loaded placement ranks `chosen` before `other`, with the numbers of both. `isBefore`: `other` has
 * the better rank, and was not reached.
 */
export function outrankedBy(chosen: Candidate<Ranked>, other: Candidate<Ranked>, isBefore: boolean): Refusal {
  const { load, freeMiB } = other.account;
  const { load: chosenLoad, freeMiB: chosenFreeMiB } = chosen.account;
  if (isBefore)
    return { reason: 'the chosen one was found first', numbers: { load, chosenLoad, freeMiB, chosenFreeMiB } };
  if (other.isFull !== chosen.isFull) {
    return { reason: 'more than its SMs would be given away', numbers: { load, chosenLoad } };
  }
  if ((other.joined === undefined) !== (chosen.joined === undefined)) {
    return { reason: 'no instance of the function idles there, as on the chosen one', numbers: { load, chosenLoad } };
  }
  if (other.joined !== undefined && chosen.joined !== undefined && waitIn(other.joined) !== waitIn(chosen.joined)) {
    const [users, chosenUsers] = [other.joined.users, chosen.joined.users];
    return {
      reason: 'its instance has more requests than the chosen one, or is yet to load',
      numbers: { users, chosenUsers },
    };
  }
  if (other.reclaims !== chosen.reclaims) {
    return { reason: 'idle instances would have to go, unlike on the chosen one', numbers: { freeMiB, chosenFreeMiB } };
  }
  if (load !== chosenLoad) {
    return { reason: 'more of its SMs are given away than of the chosen one', numbers: { load, chosenLoad } };
  }
  if (freeMiB !== chosenFreeMiB) {
    return { reason: 'less of its memory is free than of the chosen one', numbers: { freeMiB, chosenFreeMiB } };
  }
  return { reason: 'as good as the chosen one, which is listed first', numbers: { load, freeMiB } };
}
