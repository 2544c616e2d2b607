// The stage `place` by fragments (Dilu, section 3.3, algorithm 1).
import { fullness, isInUse, usedMiB } from '../../ledger/account-index.js';
import { neededMiB, stayingSums } from '../../ledger/account.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest, ShareSums } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import { functionKey } from '../../ledger/occupancy.js';
import { thousandths } from '../../ledger/occupancy.js';
import { isAffine, partnersOf, placesOfPartners } from './affinity.js';
import type { Partners } from './affinity.js';
import {
  accountsFor,
  alternativesOf,
  candidateAt,
  choiceOf,
  hasUnwanted,
  idleGang,
  instanceFor,
  placementOf,
  rejectionsOf,
} from '../../stages/place/candidate.js';
import type { Alternative, Candidate, PlacementLimits, PlacementStamp, Ranked } from '../../stages/place/candidate.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { alikeGroups } from '../../stages/place/gangs.js';
import type { LedgerPlace } from '../../stages/place/place.js';
import { spanFor, spanPlacement, warmSpanFor } from './fragments.js';
import type { Span, SpanRoom } from './fragments.js';
import { fitsShares, overSubscribed, oversubscriptionDefaults } from './oversubscription.js';
import type { Oversubscription } from './oversubscription.js';

/**
 * Places by fullness that are looked at for an affine one, at most, where too many places have a partner of the function to
 * look at all of them.
 */
const mostLooks = 1024;

/** The stage: `placeDilu` within bounds. */
export function byFragments(bounds: Oversubscription): LedgerPlace {
  return {
    begin:
      ({ ledger: { ledger } }) =>
      (request, limits, stamp) =>
        placeDilu(ledger, request, limits, stamp, bounds),
  };
}

/** The search for a place for one request. */
interface Search {
  ledger: Ledger;
  request: PlacementRequest;
  limits: PlacementLimits;
  bounds: Oversubscription;
  partners: Partners;
  /** Key of the request's function. */
  own: string;
}

/** The properties of a place that would do that decide about it, in this order. */
interface Rank {
  isWarm: boolean;
  reclaims: boolean;
  isAffine: boolean;
  isInUse: boolean;
  /** As `fullness` with the request there, and the capacity that it is times, MiB. */
  filled: number;
  capacityMiB: number;
  order: number;
}

interface Fit extends Candidate {
  rank: Rank;
}

/**
 * A place for an instance (Dilu, algorithm 1). Of the places where the sums of request and limit stay within `bounds` it is
 * the first by these rules:
 * an idle instance of the function;
 * no instance has to go;
 * workload affinity: a function is there that shares another place with this one;
 * functions are there: a device is opened only if none in use will do, and none on fragments of several (`request.spans`);
 * the fullest one afterwards, SMs and memory counted alike.
 * What no device holds is split over the fewest, those that are opened included.
 * Idle instances count in the sums unless they would have to go. Work of several devices gets those of one node that are
 * alike, of the nodes with fewest devices to open the one whose devices are best by these rules.
 */
export function placeDilu(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
  bounds: Oversubscription = oversubscriptionDefaults,
): PlacementChoice {
  const partners = partnersOf(ledger, request);
  const search: Search = { ledger, request, limits, bounds, partners, own: functionKey(request) };
  const found = request.gpus > 1 ? gangFor(search) : oneFor(search);
  const chosen = found !== undefined && 'partsMiB' in found ? found.fragments : found;
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  const placement =
    found === undefined
      ? undefined
      : 'partsMiB' in found
        ? spanPlacement(found, request, stamp)
        : placementOf(found, request, stamp);
  // As it is now: reasons are made when they are read, and its account goes on.
  const last = chosen?.at(-1);
  const lastRank = last && rankOf(last, search);
  return choiceOf(placement, chosen?.[0]?.joined?.id, alternatives, (passed) =>
    rejectionsOf(passed, request, {
      refuses: (one) => refusalBy(one, search),
      why: (one) => whyNot(rankOf(one, search), lastRank, request),
      compare: (one, other) => compare(rankOf(one, search), rankOf(other, search)),
    }),
  );
}

/** A place, or fragments of several, for work of one device. */
function oneFor(search: Search): Fit[] | Span | undefined {
  const { ledger, request, limits } = search;
  if (limits.isNew !== true) {
    const warm = warmFor(search);
    if (warm !== undefined) return [warm];
    const warmSpan = warmSpanFor(ledger, request, limits);
    if (warmSpan !== undefined) return warmSpan;
  }
  const fresh = limits.allowed === undefined ? freshAmongAll(search) : freshAmong(search, accountsFor(ledger, limits));
  if (fresh?.rank.isInUse === true) return [fresh];
  const spanIn = (room: SpanRoom): Span | undefined => spanFor(ledger, request, limits, search.bounds, room);
  const span = spanIn('in-use');
  if (span !== undefined) return span;
  if (fresh !== undefined) return [fresh];
  const opened = spanIn('free');
  if (opened !== undefined || limits.isNew === true) return opened;
  const last = reclaimedFor(search);
  return last === undefined ? spanIn('reclaimed') : [last];
}

/** The best place where an instance of the function idles, or gathers a batch. */
function warmFor(search: Search): Fit | undefined {
  const { ledger, request, limits, bounds } = search;
  let best: Fit | undefined;
  for (const account of ledger.withInstances(request, request.batch === 1)) {
    if (limits.allowed?.has(account.id) === false) continue;
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined) continue;
    // What a busy instance asks for counts already.
    if (joined.users === 0 && !fitsShares(stayingSums(account.occupants), request.share, bounds)) continue;
    best = better(fitOf(candidateAt(account, request, limits, joined), search), best);
  }
  return best;
}

/** The best place of all for a new instance for which none has to go. */
function freshAmongAll(search: Search): Fit | undefined {
  const { ledger, partners } = search;
  if (partners.size > 0) {
    const places = placesOfPartners(ledger, partners);
    const affine = places === undefined ? fullest(search, true) : freshAmong(search, places, true);
    if (affine !== undefined) return affine;
  }
  return fullest(search, false);
}

/** The fullest place of all that will do, by the ledger's index. */
function fullest(search: Search, affineOnly: boolean): Fit | undefined {
  const { ledger, partners, own } = search;
  let best: Fit | undefined;
  let looks = 0;
  const stopsAt = (account: PlaceAccount): boolean => {
    looks += 1;
    if (affineOnly && !isAffine(account.occupants, partners, own)) return looks >= mostLooks;
    const fit = freshAt(account, search);
    best = better(fit, best);
    return fit !== undefined;
  };
  ledger.fullestFirst().find((capacityMiB) => mostFilled(search, capacityMiB), stopsAt);
  return best;
}

/** The best of some places for a new instance for which none has to go. */
function freshAmong(search: Search, accounts: Iterable<PlaceAccount>, affineOnly = false): Fit | undefined {
  let best: Fit | undefined;
  for (const account of accounts) {
    if (affineOnly && !isAffine(account.occupants, search.partners, search.own)) continue;
    best = better(freshAt(account, search), best);
  }
  return best;
}

/** The most that a place of this capacity is filled by, if it can take the request. */
function mostFilled({ request, bounds }: Search, capacityMiB: number): { requestSum: number; usedMiB: number } {
  return {
    requestSum: thousandths(bounds.omega) - thousandths(request.share.smRequest),
    usedMiB: capacityMiB - neededMiB(request, { capacityMiB }),
  };
}

/** The best place for a new instance for which idle ones go. */
function reclaimedFor(search: Search): Fit | undefined {
  const { ledger, limits } = search;
  let best: Fit | undefined;
  for (const account of accountsFor(ledger, limits)) best = better(reclaimedAt(account, search), best);
  return best;
}

/** A place for a new instance, if none has to go for it. */
function freshAt(account: PlaceAccount, search: Search): Fit | undefined {
  const { request, limits, bounds } = search;
  if (account.freeMiB < neededMiB(request, account) || !fitsShares(account, request.share, bounds)) return undefined;
  if (limits.allowed?.has(account.id) === false) return undefined;
  const candidate = candidateAt(account, request, limits, undefined);
  return candidate?.reclaims === false ? fitOf(candidate, search) : undefined;
}

function reclaimedAt(account: PlaceAccount, search: Search): Fit | undefined {
  const { request, limits, bounds } = search;
  if (account.availableMiB < neededMiB(request, account)) return undefined;
  if (!fitsShares(stayingSums(account.occupants), request.share, bounds)) return undefined;
  return fitOf(candidateAt(account, request, limits, undefined), search);
}

/** Places for work of several devices: of an instance that idles on all of its own, else the best that are alike. */
function gangFor(search: Search): Fit[] | undefined {
  const { ledger, request, limits } = search;
  const warm = limits.isNew === true ? undefined : warmGang(search);
  if (warm !== undefined) return warm;
  if (limits.allowed === undefined) return gangAmongAll(search);
  return bestGang(fitsAmong(search, accountsFor(ledger, limits)), request.gpus);
}

/** The places of an instance of the function that idles on all of them. */
function warmGang(search: Search): Fit[] | undefined {
  const { ledger, request, limits, bounds } = search;
  const warm: Fit[] = [];
  for (const account of ledger.withInstances(request, request.batch === 1)) {
    if (limits.allowed?.has(account.id) === false) continue;
    const joined = instanceFor(account.occupants, request);
    if (joined === undefined || !fitsShares(stayingSums(account.occupants), request.share, bounds)) continue;
    const fit = fitOf(candidateAt(account, request, limits, joined), search);
    if (fit !== undefined) warm.push(fit);
  }
  warm.sort((one, other) => one.rank.order - other.rank.order);
  return idleGang(warm, request.gpus);
}

/** The best gang of all nodes. Numbers are read before objects, since most nodes lack the places. */
function gangAmongAll(search: Search): Fit[] | undefined {
  const { ledger, request } = search;
  const { gpus } = request;
  const accounts = ledger.accounts();
  const mayFit = quickLook(search, accounts);
  const { limitSum } = ledger.sums();
  let best: Fit[] | undefined;
  /** Places in use of the best gang; −1 if idle instances have to go for it. */
  let bestInUse = -1;
  ledger.nodeIndex().each((from, to) => {
    let [able, inUse] = [0, 0];
    for (let at = from; at < to; at += 1) {
      if (!mayFit(at)) continue;
      able += 1;
      if ((limitSum[at] as number) > 0) inUse += 1;
    }
    if (able < gpus) return false;
    // The gang that opens least goes first, so that neither this node nor one like it is better.
    if (Math.min(inUse, gpus) < bestInUse) return true;
    const fits = fitsAmong(search, accounts.slice(from, to));
    const gang = bestGang(fits, gpus);
    if (gang !== undefined && (best === undefined || compareGangs(gang, best) < 0)) {
      best = gang;
      bestInUse = gang.some(({ reclaims }) => reclaims) ? -1 : gang.filter(({ rank }) => rank.isInUse).length;
    }
    return fits.length >= gpus;
  });
  return best;
}

/** Whether sums let a place, by its order, take the request; where idle instances may go, it need not be so. */
function quickLook(
  { ledger, request, limits, bounds }: Search,
  accounts: readonly PlaceAccount[],
): (at: number) => boolean {
  const { freeMiB, availableMiB, requestSum, limitSum } = ledger.sums();
  const mostRequest = thousandths(bounds.omega) - thousandths(request.share.smRequest);
  const mostLimit = thousandths(bounds.gamma) - thousandths(request.share.smLimit);
  return (at) => {
    const account = accounts[at] as PlaceAccount;
    const needMiB = request.memoryMiB > 0 ? request.memoryMiB : account.capacityMiB;
    const [requests, limited] = [requestSum[at] as number, limitSum[at] as number];
    const hasShares = limited === 0 || (requests <= mostRequest && limited <= mostLimit);
    if (hasShares && (freeMiB[at] as number) >= needMiB) return true;
    if (limits.isNew === true || (availableMiB[at] as number) < needMiB) return false;
    return account.occupants.length !== account.staying.length;
  };
}

/** Those of some places that will do for a part of a new instance. */
function fitsAmong(search: Search, accounts: readonly PlaceAccount[]): Fit[] {
  const fits: Fit[] = [];
  for (const account of accounts) {
    const fit = freshAt(account, search) ?? (search.limits.isNew === true ? undefined : reclaimedAt(account, search));
    if (fit !== undefined) fits.push(fit);
  }
  return fits;
}

/** The best candidates of each node and kind of device, and of these the gang that removes and opens least. */
function bestGang(fits: readonly Fit[], gpus: number): Fit[] | undefined {
  let best: Fit[] | undefined;
  for (const alike of alikeGroups(fits, ({ account }) => account.place)) {
    if (alike.length < gpus) continue;
    const gang = alike.sort((one, other) => compare(one.rank, other.rank)).slice(0, gpus);
    if (best === undefined || compareGangs(gang, best) < 0) best = gang;
  }
  return best;
}

function compareGangs(one: readonly Fit[], other: readonly Fit[]): number {
  const count = (gang: readonly Fit[], has: (rank: Rank) => boolean): number =>
    gang.reduce((sum, { rank }) => sum + Number(has(rank)), 0);
  const filled = (gang: readonly Fit[]): number =>
    gang.reduce((sum, { rank }) => sum + rank.filled / rank.capacityMiB, 0);
  return (
    count(one, ({ reclaims }) => reclaims) - count(other, ({ reclaims }) => reclaims) ||
    count(other, (rank) => rank.isInUse) - count(one, (rank) => rank.isInUse) ||
    count(other, (rank) => rank.isAffine) - count(one, (rank) => rank.isAffine) ||
    filled(other) - filled(one) ||
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- a gang has at least one place
    one[0]!.rank.order - other[0]!.rank.order
  );
}

function fitOf(candidate: Candidate | undefined, search: Search): Fit | undefined {
  return candidate && { ...candidate, rank: rankOf(candidate, search) };
}

function better(one: Fit | undefined, best: Fit | undefined): Fit | undefined {
  if (one === undefined) return best;
  return best === undefined || compare(one.rank, best.rank) < 0 ? one : best;
}

function rankOf(
  { account, joined, reclaims }: Candidate<Ranked & ShareSums>,
  { request, partners, own }: Search,
): Rank {
  const { occupants, capacityMiB, availableMiB, order } = account;
  const sums = reclaims ? stayingSums(occupants) : account;
  const heldMiB = reclaims ? capacityMiB - availableMiB : usedMiB(account);
  const isNew = joined === undefined;
  return {
    isWarm: !isNew,
    reclaims,
    isAffine: isAffine(occupants, partners, own),
    isInUse: isInUse(sums),
    filled: fullness(
      {
        requestSum: sums.requestSum + (isNew ? thousandths(request.share.smRequest) : 0),
        usedMiB: heldMiB + (isNew ? neededMiB(request, account) : 0),
      },
      capacityMiB,
    ),
    capacityMiB,
    order,
  };
}

/** Below 0 if `one` goes before `other`. */
function compare(one: Rank, other: Rank): number {
  return (
    Number(other.isWarm) - Number(one.isWarm) ||
    Number(one.reclaims) - Number(other.reclaims) ||
    Number(other.isAffine) - Number(one.isAffine) ||
    Number(other.isInUse) - Number(one.isInUse) ||
    // Multiplied by the other's capacity, both stay integers.
    other.filled * one.capacityMiB - one.filled * other.capacityMiB ||
    one.order - other.order
  );
}

/** Why a place that facts allow cannot take the request; undefined if it can. */
function refusalBy(one: Alternative, { request, limits, bounds }: Search): Refusal | undefined {
  const { occupants, joined, freeMiB } = one;
  if (joined !== undefined && joined.users > 0) return undefined;
  if (joined !== undefined || limits.isNew !== true) {
    return overSubscribed(stayingSums(occupants), request.share, bounds);
  }
  const refusal = overSubscribed(one, request.share, bounds);
  if (refusal !== undefined) return refusal;
  const needMiB = neededMiB(request, one);
  if (freeMiB < needMiB) {
    return { reason: 'too little free memory beside idle instances', numbers: { freeMiB, needMiB } };
  }
  if (!hasUnwanted(one, request, undefined)) return undefined;
  return { reason: 'isolation: instances idle there', numbers: { idle: occupants.length } };
}

/** Why a place that would do was not chosen; `chosen`: the one that was chosen last, if any. */
function whyNot(one: Rank, chosen: Rank | undefined, { gpus }: PlacementRequest): Refusal {
  const filled = partOf(one);
  const tooFew = `${gpus} alike are needed on one node`;
  if (chosen === undefined) return { reason: tooFew, numbers: { filled } };
  const numbers = { filled, chosenFilled: partOf(chosen) };
  if (compare(one, chosen) < 0) return { reason: gpus > 1 ? tooFew : 'the chosen one was found first', numbers };
  return { reason: ruleBetween(one, chosen), numbers };
}

/** The first rule by which `chosen` goes before `one`. */
function ruleBetween(one: Rank, chosen: Rank): string {
  if (one.isWarm !== chosen.isWarm) return 'no instance of the function idles there, as on the chosen one';
  if (one.reclaims !== chosen.reclaims) return 'idle instances would have to go, unlike on the chosen one';
  if (one.isAffine !== chosen.isAffine) {
    return 'on the chosen one is a function that shares another place with this one';
  }
  if (one.isInUse !== chosen.isInUse) return 'it would have to be opened, and the chosen one is in use';
  if (one.filled * chosen.capacityMiB !== chosen.filled * one.capacityMiB) return 'the chosen one is fuller';
  return 'as full as the chosen one, which is listed first';
}

/** The part of a place that is given away, SMs and memory counted alike. */
function partOf({ filled, capacityMiB }: Rank): number {
  return filled / (2000 * capacityMiB);
}
