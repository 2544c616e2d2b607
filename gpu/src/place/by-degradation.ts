// Placement by predicted degradation (SMORE, thesis section 3.3: equations 3.9 to 3.11, algorithm 3.1).
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders and drawn indices are those of the ledger's accounts */
import type { Random } from '@gpuwhisk/common/system/random';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../view/account.js';
import { neededMiB } from '../view/account.js';
import type { Ledger } from '../view/ledger.js';
import { functionKey } from '../view/occupancy.js';
import { thousandths } from '../view/shares.js';
import type { Task } from '../view/view.js';
import { deadlineAt } from '../view/view.js';
import {
  accountsFor,
  alike,
  alternativesOf,
  candidateAt,
  choiceOf,
  instanceFor,
  placementOf,
  rejectionsOf,
} from './candidate.js';
import type { Candidate, PlacementLimits, PlacementStamp } from './candidate.js';
import type { Refusal } from './fact-filters.js';
import type { SetEffects } from './set-effects.js';

/** Settings of the placement. */
export interface DegradationSettings {
  /** Weight of the workloads' degradation against the function's (λ of equation 3.11), 0 to 1. */
  trainWeight: number;
  /** Part of the memory that is given away where processes share a place (σ of equation 3.9), 0 to 1. */
  memoryPart: number;
  /** Cost of each instance that runs on the place already (thesis section 4.4), in units of D. */
  perRequest: number;
  /** 1: places where the function's instance idles come before others; 0: they do not. */
  warmFirst: number;
}

/** A search for a place. */
export interface DegradationSearch {
  effects: SetEffects;
  settings: DegradationSettings;
  /** Number of places drawn at random; absent: all are looked at. */
  draws?: number;
  random?: Random;
  /** The first place that will do, instead of the best one. */
  takesFirst: boolean;
  /** Places whose measured degradation is above the predicted one: they come last. */
  risky: ReadonlySet<string>;
}

interface Scored extends Candidate {
  cost: number;
  isRisky: boolean;
}

/**
 * The place of least λ·D_train + (1 − λ)·D_func among those that keep their workloads within their bounds and the task
 * within its deadline (equations 3.10 and 3.11; the start counts too). Refused with what decided against each place.
 */
export function placeByDegradation(
  ledger: Ledger,
  task: Task,
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
  search: DegradationSearch,
): PlacementChoice {
  const judge = new Judge(task, request, stamp.at, search);
  const chosen = request.gpus > 1 ? gang(ledger, request, limits, judge) : best(ledger, request, limits, judge);
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  // Counted now: reasons are made when they are read, and the accounts go on.
  const costs = new Map<string, number>();
  const refusals = new Map<string, Refusal>();
  for (const { id, joined } of alternatives) {
    const account = ledger.account(id);
    if (account === undefined) continue;
    const refusal = judge.refusal(account, joined !== undefined);
    if (refusal !== undefined) refusals.set(id, refusal);
    else costs.set(id, judge.cost(account, joined !== undefined));
  }
  const chosenCost = chosen?.at(-1)?.cost;
  return choiceOf(chosen && placementOf(chosen, request, stamp), chosen?.[0]?.joined?.id, alternatives, (passed) =>
    rejectionsOf(passed, request, {
      refuses: ({ id }) => refusals.get(id),
      why: ({ account: { id } }) => whyNot(costs.get(id) ?? 0, chosenCost, search, request),
      compare: (one, other) => (costs.get(one.id) ?? 0) - (costs.get(other.id) ?? 0),
    }),
  );
}

function whyNot(
  cost: number,
  chosenCost: number | undefined,
  { takesFirst, draws }: DegradationSearch,
  { gpus }: PlacementRequest,
): Refusal {
  if (chosenCost === undefined) return { reason: `${gpus} alike are needed on one node`, numbers: { cost } };
  const numbers = { cost, chosenCost };
  if (cost > chosenCost) return { reason: 'more degradation is predicted there than on the chosen one', numbers };
  if (takesFirst || draws !== undefined) return { reason: 'the chosen one was found first', numbers };
  return { reason: 'an instance idles on the chosen one, or it is no riskier and is listed first', numbers };
}

/** Judges places by prediction for one task. */
class Judge {
  private readonly newcomer: number;
  private readonly leftMs: number;

  constructor(
    private readonly task: Task,
    private readonly request: PlacementRequest,
    at: number,
    readonly search: DegradationSearch,
  ) {
    this.newcomer = search.effects.newcomer(functionKey(request), thousandths(request.share.smLimit));
    this.leftMs = deadlineAt(task) - at;
  }

  /** λ·D_train + (1 − λ)·D_func, and the cost of the instances that run there; NaN where a prediction refuses the place. */
  cost(account: PlaceAccount, isWarm: boolean): number {
    const { effects, settings } = this.search;
    if (!this.keepsReserve(account)) return NaN;
    const { suffers, train, own, beyond } = effects.effectOn(account, this.newcomer);
    if (suffers || beyond > 0 || this.needMs(own, isWarm) > this.leftMs) return NaN;
    const { trainWeight, perRequest } = settings;
    return trainWeight * train + (1 - trainWeight) * own + perRequest * account.busy;
  }

  /** Why a prediction refuses the place; undefined if it does not. */
  refusal(account: PlaceAccount, isWarm: boolean): Refusal | undefined {
    const { effects, settings } = this.search;
    if (!this.keepsReserve(account)) {
      const mostMiB = settings.memoryPart * account.capacityMiB;
      const numbers = { usedMiB: this.usedMiB(account), mostMiB };
      return { reason: 'too little memory would be left beside others', numbers };
    }
    const { suffers, own, beyond, bound } = effects.effectOn(account, this.newcomer);
    if (suffers) {
      return { reason: 'a workload is slower there than it tolerates, or has stopped reporting', numbers: {} };
    }
    if (beyond > 0) {
      const numbers = { degradation: beyond, bound };
      return { reason: 'a workload would become slower there than it tolerates', numbers };
    }
    const { leftMs } = this;
    const needMs = this.needMs(own, isWarm);
    return needMs > leftMs ? { reason: 'it would miss its deadline there', numbers: { needMs, leftMs } } : undefined;
  }

  private needMs(own: number, isWarm: boolean): number {
    const { soloMs, startMs = 0 } = this.task;
    return soloMs === undefined ? 0 : soloMs * (1 + own) + (isWarm ? 0 : startMs);
  }

  /** Equation 3.9: the reserve is for what several processes lose to each other; one alone may take all that there is. */
  private keepsReserve(account: PlaceAccount): boolean {
    if (account.staying.length === 0 && account.workloads === 0) return true;
    return this.usedMiB(account) <= this.search.settings.memoryPart * account.capacityMiB;
  }

  private usedMiB(account: PlaceAccount): number {
    return account.capacityMiB - account.availableMiB + neededMiB(this.request, account);
  }
}

/** The cheapest of the places, or the first that will do. */
function best(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits, judge: Judge): Scored[] | undefined {
  const { search } = judge;
  let found: Scored | undefined;
  const warm = ledger.withInstances(request, request.batch === 1);
  for (const account of drawn(ledger, request, limits, search)) {
    const one = scored(account, request, limits, warm, judge, search.takesFirst ? undefined : found);
    if (one === undefined) continue;
    if (search.takesFirst && !one.isRisky) return [one];
    if (found === undefined || compare(one, found, search) < 0) found = one;
  }
  return found && [found];
}

/** As many places alike of one node as the task needs, the cheapest first. */
function gang(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits, judge: Judge): Scored[] | undefined {
  const all = accountsFor(ledger, limits)
    .map((account) => scored(account, request, limits, noPlaces, judge, undefined))
    .filter((one) => one !== undefined);
  all.sort((one, other) => compare(one, other, judge.search));
  return alike(all, request.gpus) as Scored[] | undefined;
}

const noPlaces: ReadonlySet<PlaceAccount> = new Set();

/** A place that will do; undefined if it will not, or is certainly no better than `best`. */
function scored(
  account: PlaceAccount,
  request: PlacementRequest,
  limits: PlacementLimits,
  warm: ReadonlySet<PlaceAccount>,
  judge: Judge,
  best: Scored | undefined,
): Scored | undefined {
  const joined = warm.has(account) ? instanceFor(account.occupants, request) : undefined;
  const cost = judge.cost(account, joined !== undefined);
  if (Number.isNaN(cost)) return undefined;
  const isRisky = judge.search.risky.has(account.id);
  // Facts are asked for last: they cost most, and few places are better than the best one so far.
  const likely = { isRisky, joined, reclaims: false, cost, account };
  if (best !== undefined && compare(likely, best, judge.search) >= 0) return undefined;
  const candidate = candidateAt(account, request, limits, joined);
  return candidate && { ...candidate, cost, isRisky };
}

type Ranking = Pick<Scored, 'isRisky' | 'joined' | 'reclaims' | 'cost' | 'account'>;

function compare(one: Ranking, other: Ranking, { settings }: DegradationSearch): number {
  return (
    Number(one.isRisky) - Number(other.isRisky) ||
    settings.warmFirst * (Number(one.joined === undefined) - Number(other.joined === undefined)) ||
    Number(one.reclaims) - Number(other.reclaims) ||
    one.cost - other.cost ||
    one.account.order - other.account.order
  );
}

/** The places that are looked at: those drawn, or all that may have the memory. */
function* drawn(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  { draws, random }: DegradationSearch,
): Iterable<PlaceAccount> {
  const accounts = accountsFor(ledger, limits);
  if (draws === undefined || random === undefined || draws >= accounts.length) {
    const { availableMiB } = ledger.sums();
    for (const account of accounts) if (!(availableMiB[account.order]! < request.memoryMiB)) yield account;
    return;
  }
  const seen = new Set<number>();
  while (seen.size < draws) {
    const at = random.uint32() % accounts.length;
    if (seen.has(at)) continue;
    seen.add(at);
    yield accounts[at]!;
  }
}
