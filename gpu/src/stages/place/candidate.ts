// Places that would do for a request, with their instances that it may use or that are in its way; and those not chosen.
import type { Placement, Share, NodeStatus, Rejection } from '@gpuwhisk/common/gpu';
import { neededMiB, PastAccount } from '../../ledger/account.js';
import type { Account, PlaceAccount, PlacementRequest, PlacementChoice } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { Occupant } from '../../ledger/occupancy.js';
import { refusing, mayShare, refusalOf } from './fact-filters.js';
import { gangOf } from './gangs.js';
import type { Start } from '../../view/decision.js';
import { classAtOrAbove } from '../../view/shares.js';
import type { Task } from '../../view/view.js';
import { keptForAnother, mostRejections } from '../../view/decision.js';
import type { Refusal } from './fact-filters.js';
import type { PredictedFilter } from './predicted-filters.js';

/** Limits on the places of one activation, besides facts of the places. */
export interface PlacementLimits {
  /** Places, by id, that are kept for one that waits for longer. */
  kept: ReadonlySet<string>;
  /** Ids of the places that the request may go to; absent: all. */
  allowed?: ReadonlySet<string>;
  /** Whether a node may be chosen: it is heard of, also since it has refused the activation. */
  isOpen(invoker: string): boolean;
  /** `first`: the first place found among those that are loaded least, to within a twentieth; absent: the best one. */
  fit?: 'best' | 'first';
  /** It gets an instance of its own, even if one idles. */
  isNew?: boolean;
  /** What is predicted or measured of those on a place; absent: nothing is asked. */
  predicted?: PredictedFilter | undefined;
}

/** Time and lease of a decision, which its placements carry. */
export interface PlacementStamp {
  /** Epoch of the deciding controller's lease. */
  epoch: number;
  /** Epoch ms. */
  at: number;
}

/** The sums that candidates are ranked by. */
export type Ranked = Account & Pick<PlaceAccount, 'id' | 'order' | 'occupants' | 'load' | 'freeMiB'>;

/** A place that would do. */
export interface Candidate<One extends Ranked = PlaceAccount> {
  account: One;
  /** The instance that the request would run in. */
  joined: Occupant | undefined;
  /** The place would have given more than its SMs away. */
  isFull: boolean;
  /** Idle instances have to go. */
  reclaims: boolean;
}

/** So many places are looked up one by one; more of them by one call for all. */
const mostLookedUp = 16;

/** The places that a request may be considered for. */
export function accountsFor(ledger: Ledger, { allowed }: PlacementLimits): readonly PlaceAccount[] {
  if (allowed === undefined) return ledger.accounts();
  if (allowed.size > mostLookedUp) return ledger.accounts().filter(({ id }) => allowed.has(id));
  return Array.from(allowed, (id) => ledger.account(id)).filter((account) => account !== undefined);
}

/** A place with its facts; undefined if one of them refuses, or it may not be chosen. */
export function candidateAt(
  account: PlaceAccount,
  request: PlacementRequest,
  { kept, isOpen, predicted }: PlacementLimits,
  joined: Occupant | undefined,
): Candidate | undefined {
  if (!isOpen(account.place.node.invoker) || kept.has(account.id)) return undefined;
  if (refusing(account, request, joined) !== undefined || predicted?.(account, joined) !== undefined) return undefined;
  return candidateOf(account, request, joined);
}

/** A place of which facts refuse nothing. */
function candidateOf<One extends Ranked>(
  account: One,
  request: PlacementRequest,
  joined: Occupant | undefined,
): Candidate<One> {
  const lacks = joined === undefined && account.freeMiB < neededMiB(request, account);
  return {
    account,
    joined,
    isFull: account.load + request.share.smRequest > 1,
    reclaims: lacks || hasUnwanted(account, request, joined),
  };
}

/** Whether `best` is undefined or goes after `candidate`. */
export function isBetter(candidate: Candidate, best: Candidate | undefined): boolean {
  return best === undefined || compare(candidate, best) < 0;
}

/** Below 0 if `a` goes before `b`. */
export function compare(a: Candidate<Ranked>, b: Candidate<Ranked>): number {
  return (
    Number(a.isFull) - Number(b.isFull) ||
    waitOf(a) - waitOf(b) ||
    Number(a.reclaims) - Number(b.reclaims) ||
    a.account.load - b.account.load ||
    b.account.freeMiB - a.account.freeMiB ||
    a.account.order - b.account.order
  );
}

/** The gang among candidates; undefined if there is none. */
export function alike<One extends Candidate>(candidates: readonly One[], gpus: number): One[] | undefined {
  return gangOf(candidates, gpus, ({ account }) => account.place);
}

function waitOf({ joined }: Candidate<Ranked>): number {
  return joined === undefined ? 2 * notLoaded : waitIn(joined);
}

/** The candidates that are all devices of one instance. */
export function idleGang<One extends Candidate>(candidates: readonly One[], gpus: number): One[] | undefined {
  for (const { joined } of candidates) {
    if (joined === undefined) continue;
    const gang = candidates.filter((other) => other.joined?.id === joined.id);
    if (gang.length === gpus) return gang;
  }
  return undefined;
}

/** The placement of a request on chosen places. */
export function placementOf(chosen: readonly Candidate[], request: PlacementRequest, stamp: PlacementStamp): Placement {
  // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- a placement has at least one place
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
export function reclaimedAt({ account, joined, reclaims }: Candidate, request: PlacementRequest): string[] {
  if (!reclaims) return [];
  const unwanted = unwantedOn(account, request, joined);
  const lackingMiB = neededMiB(request, account) - account.freeMiB;
  const gone = joined === undefined ? reclaimable(account.occupants, unwanted, lackingMiB) : unwanted;
  return gone.flatMap(({ container }) => container ?? []);
}

/**
 * The instance that a request would run in: one that idles, or else one that runs a batch while the next one gathers, with the
 * fewest requests; one that is yet to load only if there is no other.
 */
export function instanceFor(occupants: readonly Occupant[], request: PlacementRequest): Occupant | undefined {
  const most = request.batch > 1 ? 2 * request.batch : 0;
  let joined: Occupant | undefined;
  for (const one of occupants) {
    if (one.action !== request.action || !isInstanceOf(one, request)) continue;
    if (isIdle(one)) return one;
    if (one.users < most && (joined === undefined || waitIn(one) < waitIn(joined))) joined = one;
  }
  return joined;
}

/** Whether an instance is there and has nothing to do. */
export function isIdle({ users, container }: Pick<Occupant, 'users' | 'container'>): boolean {
  return users === 0 && container !== undefined;
}

/** More than any instance has requests. */
const notLoaded = 1e6;

/** Orders the instances that a request may join: those with the fewest requests first, those that are yet to load last. */
export function waitIn({ users, isLoading }: Pick<Occupant, 'users' | 'isLoading'>): number {
  return isLoading === true ? notLoaded + users : users;
}

function isInstanceOf(occupant: Occupant, { namespace, subject, share, gpus }: PlacementRequest): boolean {
  return (
    occupant.namespace === namespace &&
    occupant.subject === subject &&
    occupant.gpus === gpus &&
    occupant.shareClass === share.shareClass &&
    occupant.memoryMiB >= share.memoryMiB
  );
}

/** Instances that may not be beside the request; of a place that facts do not forbid it, all of them idle. */
function unwantedOn(
  { mode, occupants }: Account & { occupants: readonly Occupant[] },
  request: PlacementRequest,
  joined: Occupant | undefined,
): Occupant[] {
  return occupants.filter((one) => one !== joined && !mayShare(mode, one, request));
}

/** Whether there are any. */
export function hasUnwanted(
  { mode, occupants }: Account & { occupants: readonly Occupant[] },
  request: PlacementRequest,
  joined: Occupant | undefined,
): boolean {
  for (const one of occupants) if (one !== joined && !mayShare(mode, one, request)) return true;
  return false;
}

/** The idle instances that go so that `lackingMiB` more are free, `unwanted` ones in any case. */
function reclaimable(occupants: readonly Occupant[], unwanted: readonly Occupant[], lackingMiB: number): Occupant[] {
  const gone = [...unwanted];
  let lacking = unwanted.reduce((left, { memoryMiB }) => left - memoryMiB, lackingMiB);
  if (lacking <= 0) return gone;
  const idle = occupants.filter((one) => isIdle(one) && !gone.includes(one));
  // Least saved loading time per MiB first; where that is not known, those without an action, then the largest.
  const savedPerMiB = ({ loadMs = 0, memoryMiB }: Occupant): number => loadMs / memoryMiB;
  idle.sort(
    (one, other) =>
      savedPerMiB(one) - savedPerMiB(other) ||
      Number(one.action !== undefined) - Number(other.action !== undefined) ||
      other.memoryMiB - one.memoryMiB,
  );
  for (const one of idle) {
    if (lacking <= 0) break;
    gone.push(one);
    lacking -= one.memoryMiB;
  }
  return gone;
}

/** The instances of a task's function that idle. */
export function idleInstances(occupants: readonly Occupant[], task: Pick<Task, 'function' | 'namespace'>): Occupant[] {
  return occupants.filter(
    ({ users, action, namespace }) => users === 0 && action === task.function && namespace === task.namespace,
  );
}

/**
 * `asked` with the share of a start: in the instance of the task's function that idles there, of the smallest class at or
 * above the limit, else in a new instance. The limit is the instance's class, but the decided one if the policy gives a
 * request, too: kernel tokens move between the two.
 */
export function shareInInstance(
  occupants: readonly Occupant[],
  task: Task,
  { share: limit, request }: Pick<Start, 'share' | 'request'>,
  asked: Share,
): Share {
  const { maxShare = 1 } = task;
  const decided = Math.min(limit, maxShare);
  const classes = idleInstances(occupants, task)
    .map(({ shareClass }) => shareClass / 100)
    .filter((share) => share >= decided && share <= maxShare);
  const fraction = classes.length > 0 ? Math.min(...classes) : decided;
  return {
    ...asked,
    shareClass: classAtOrAbove(fraction),
    // Without tokens, an instance of a larger class holds all of its class.
    smRequest: request === undefined ? fraction : Math.min(request, decided),
    smLimit: request === undefined ? fraction : decided,
  };
}

/** A place that was not chosen, with its sums as they were then. */
export type Alternative = PastAccount<Refusal>;

/** Gives the reasons why alternatives were not chosen. */
type Explain = (alternatives: readonly Alternative[]) => Rejection[];

/**
 * A choice that makes the reasons of its alternatives when they are first read, as of the time of the decision. It is a class,
 * since an object literal with a getter costs two microseconds of a decision.
 */
class ExplainedChoice implements PlacementChoice {
  // Copies of a choice by spread must not hold on to these.
  readonly #alternatives: readonly Alternative[];
  readonly #explain: Explain;
  #reasons: Rejection[] | undefined;

  constructor(
    readonly placement: Placement | undefined,
    readonly reuses: string | undefined,
    alternatives: readonly Alternative[],
    explain: Explain,
  ) {
    this.#alternatives = alternatives;
    this.#explain = explain;
  }

  get rejected(): Rejection[] {
    return (this.#reasons ??= this.#explain(this.#alternatives));
  }
}

/** The choice of `placement`, in the instance `reuses` if there is one; its alternatives are explained when they are read. */
export function choiceOf(
  placement: Placement | undefined,
  reuses: string | undefined,
  alternatives: readonly Alternative[],
  explain: Explain,
): PlacementChoice {
  return new ExplainedChoice(placement, placement && reuses, alternatives, explain);
}

/**
 * The places that were not chosen, at most `mostRejections`: first those that the request may go to. Of a large cluster
 * only the first places are looked at.
 */
export function alternativesOf(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  chosen: readonly Candidate[] | undefined,
): Alternative[] {
  const found: Alternative[] = [];
  const accounts = looking(ledger, limits);
  const instances = ledger.withInstances(request, request.batch === 1);
  let node: NodeStatus | undefined;
  let isOpen = false;
  for (const account of accounts) {
    if (found.length >= mostRejections) break;
    if (node !== account.place.node) {
      ({ node } = account.place);
      isOpen = limits.isOpen(node.invoker);
    }
    if (!isOpen || isAmong(chosen, account)) continue;
    const isJoined = limits.isNew !== true && instances.has(account);
    const joined = isJoined ? instanceFor(account.occupants, request) : undefined;
    found.push(new PastAccount(account, joined, refusalBy(limits, account, request, joined)));
  }
  return found;
}

function isAmong(chosen: readonly Candidate[] | undefined, account: PlaceAccount): boolean {
  if (chosen !== undefined) for (const one of chosen) if (one.account === account) return true;
  return false;
}

/** A policy's reasons for places that it did not choose. */
export interface Explanation {
  /** The reason against a place that would have done. */
  why: (candidate: Candidate<Alternative>) => Refusal;
  /** Why a place that facts allow would not have done; absent: it would have. */
  refuses?: (alternative: Alternative) => Refusal | undefined;
  /** Below 0 if `one` goes before `other`; absent: the least loaded first. */
  compare?: (one: Candidate<Alternative>, other: Candidate<Alternative>) => number;
}

/** Why places were not chosen: first those that would have done, by their rank, then others. */
export function rejectionsOf(
  alternatives: readonly Alternative[],
  request: PlacementRequest,
  { why, refuses, compare: compareAs }: Explanation,
): Rejection[] {
  const able: Candidate<Alternative>[] = [];
  const refused: Rejection[] = [];
  for (const one of alternatives) {
    const refusal = one.refusal ?? refusalOf(one, request, one.joined) ?? refuses?.(one);
    if (refusal === undefined) able.push(candidateOf(one, request, one.joined));
    else refused.push({ what: one.id, reason: refusal.reason, numbers: refusal.numbers });
  }
  able.sort(compareAs ?? compare);
  const rejected = able.map((one): Rejection => ({ what: one.account.id, ...why(one) }));
  return [...rejected, ...refused];
}

/** The places that alternatives are taken from: first those that the request may go to. */
function looking(ledger: Ledger, limits: PlacementLimits): readonly PlaceAccount[] {
  const accounts = ledger.accounts();
  if (limits.allowed === undefined) return accounts;
  return [...new Set([...accountsFor(ledger, limits), ...accounts.slice(0, mostRejections)])];
}

const notAllowed: Refusal = { reason: 'it may not run there', numbers: {} };

/** Why a place may not be chosen though facts would let it; undefined if it may. */
function refusalBy(
  { allowed, kept, predicted }: PlacementLimits,
  account: PlaceAccount,
  request: PlacementRequest,
  joined: Occupant | undefined,
): Refusal | undefined {
  if (allowed?.has(account.id) === false) return notAllowed;
  if (kept.has(account.id)) return keptForAnother;
  // Facts are told first.
  if (predicted === undefined || refusing(account, request, joined) !== undefined) return undefined;
  return predicted(account, joined);
}
