import type { NodeStatus, Placement, Rejection } from '@gpuwhisk/common/gpu';
import { keptForAnother, mostRejections } from '../view/decision.js';
import type { Ledger } from '../view/ledger.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../view/account.js';
import type { Occupant } from '../view/occupancy.js';
import { accountsFor, candidateOf, compare, instanceFor } from './candidate.js';
import type { Candidate, PlacementLimits, Ranked } from './candidate.js';
import { refusalOf } from './fact-filters.js';
import type { Refusal } from './fact-filters.js';

/** A place that was not chosen, with its sums as they were then. */
export class Alternative implements Ranked {
  readonly id: string;
  readonly order: number;
  readonly mode: Ranked['mode'];
  readonly health: Ranked['health'];
  readonly capacityMiB: number;
  readonly availableMiB: number;
  readonly freeMiB: number;
  readonly clients: number;
  readonly busy: number;
  readonly workloads: number;
  readonly load: number;
  readonly requestSum: number;
  readonly limitSum: number;
  // The ledger makes both lists again when it counts a place, so that these stay as they were.
  readonly occupants: readonly Occupant[];
  readonly staying: Ranked['staying'];

  constructor(
    account: PlaceAccount,
    /** The instance that the request would have run in. */
    readonly joined: Occupant | undefined,
    /** Why it might not be chosen, whatever the facts are. */
    readonly refusal: Refusal | undefined,
  ) {
    this.id = account.id;
    this.order = account.order;
    this.mode = account.mode;
    this.health = account.health;
    this.capacityMiB = account.capacityMiB;
    this.availableMiB = account.availableMiB;
    this.freeMiB = account.freeMiB;
    this.clients = account.clients;
    this.busy = account.busy;
    this.workloads = account.workloads;
    this.load = account.load;
    this.requestSum = account.requestSum;
    this.limitSum = account.limitSum;
    this.occupants = account.occupants;
    this.staying = account.staying;
  }
}

/** Gives the reasons why alternatives were not chosen. */
export type Explain = (alternatives: readonly Alternative[]) => Rejection[];

/** A choice that makes the reasons of its alternatives when they are first read, as of the time of the decision. */
export function choiceOf(
  placement: Placement | undefined,
  reuses: string | undefined,
  alternatives: readonly Alternative[],
  explain: Explain,
): PlacementChoice {
  let reasons: Rejection[] | undefined;
  return {
    ...(placement !== undefined && { placement }),
    ...(reuses !== undefined && { reuses }),
    get rejected() {
      return (reasons ??= explain(alternatives));
    },
  };
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
  for (let order = 0; order < accounts.length && found.length < mostRejections; order += 1) {
    const account = accounts[order]!;
    if (node !== account.place.node) {
      ({ node } = account.place);
      isOpen = limits.isOpen(node.invoker);
    }
    if (!isOpen || isAmong(chosen, account)) continue;
    const isJoined = limits.isNew !== true && instances.has(account);
    const joined = isJoined ? instanceFor(account.occupants, request) : undefined;
    found.push(new Alternative(account, joined, refusalBy(limits, account)));
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
  compare?: (one: Alternative, other: Alternative) => number;
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
  able.sort((one, other) => compareAs?.(one.account, other.account) ?? compare(one, other));
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
function refusalBy({ allowed, kept }: PlacementLimits, { id }: PlaceAccount): Refusal | undefined {
  if (allowed?.has(id) === false) return notAllowed;
  return kept.has(id) ? keptForAnother : undefined;
}
