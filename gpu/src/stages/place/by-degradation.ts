// Placement by predicted degradation (SMORE, thesis section 3.3: equations 3.9 to 3.11, algorithm 3.1).
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders and drawn indices are those of the ledger's accounts */
import type { Random } from '@gpuwhisk/common/system/random';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import { neededMiB } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import { functionKey } from '../../ledger/occupancy.js';
import { thousandths } from '../../ledger/occupancy.js';
import type { Task } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';
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
import { degradationRefusal, mostMemory, neededMs } from './degradation-refusals.js';
import type { Refusal } from './fact-filters.js';
import { costOf } from './place-costs.js';
import type { CostWeights, PlaceCosts } from './place-costs.js';
import { effectOf } from './set-effects.js';
import type { Effect, Members, SetEffects } from './set-effects.js';

/** Settings of equations 3.9 and 3.11; the weights are ours. */
export const degradationScoreDefaults = {
  /** λ of equation 3.11: weight of the workloads' degradation against the function's, 0 to 1. */
  trainWeight: 0.5,
  /** σ of equation 3.9: part of the memory that is given away where processes share a place, 0 to 1. */
  memoryPart: 0.95,
  /** Cost of each instance that runs on the place already (thesis section 4.4), in units of D. */
  perRequest: 0.02,
};

/** Settings of the placement. */
export interface DegradationSettings extends CostWeights {
  memoryPart: number;
  /** 1: places where the function's instance idles come before others; 0: they do not. */
  warmFirst: number;
}

/** A search for a place. */
export interface DegradationSearch {
  effects: SetEffects;
  costs: PlaceCosts;
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
  const one = request.gpus > 1 ? undefined : best(ledger, request, limits, judge);
  const chosen = request.gpus > 1 ? gang(ledger, request, limits, judge) : one && [one];
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  // As it is now: reasons are made when they are read, and places go on.
  const accounts = ledger.accounts();
  const members = alternatives.map(({ order }) => search.effects.membersOf(accounts[order]!));
  const chosenCost = chosen?.at(-1)?.cost;
  return choiceOf(chosen && placementOf(chosen, request, stamp), chosen?.[0]?.joined?.id, alternatives, (passed) => {
    const costs = new Map<string, number>();
    const refusals = new Map<string, Refusal>();
    for (const [at, one] of passed.entries()) {
      const effect = judge.effectAmong(members[at]!);
      const refusal = judge.refusal(one, effect, one.joined !== undefined);
      if (refusal !== undefined) refusals.set(one.id, refusal);
      else costs.set(one.id, costOf(effect, one.busy, search.settings));
    }
    return rejectionsOf(passed, request, {
      refuses: ({ id }) => refusals.get(id),
      why: ({ account: { id } }) => whyNot(costs.get(id) ?? 0, chosenCost, search, request),
      compare: ({ account: one }, { account: other }) => (costs.get(one.id) ?? 0) - (costs.get(other.id) ?? 0),
    });
  });
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

/** The sums of a place that it is judged by. */
type Judged = Pick<PlaceAccount, 'capacityMiB' | 'availableMiB' | 'workloads' | 'staying'>;

/** Judges places by prediction for one task. */
class Judge {
  readonly newcomer: number;
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

  /** No place with a greater D of the task keeps its deadline; those with a lesser one are judged by `cost`. */
  mostOwn(isWarm: boolean): number {
    const { soloMs } = this.task;
    return soloMs === undefined ? Infinity : (this.leftMs - this.startMs(isWarm)) / soloMs - 1 + 1e-9;
  }

  /** The cost of a place; NaN where a prediction refuses it. */
  cost(account: PlaceAccount, isWarm: boolean): number {
    const { effects, settings } = this.search;
    if (this.usedMiB(account) > mostMemory(account, settings.memoryPart)) return NaN;
    const effect = effects.effectOn(account, this.newcomer);
    return this.needMs(effect.own, isWarm) > this.leftMs ? NaN : costOf(effect, account.busy, settings);
  }

  /** The effect on a place with these members. */
  effectAmong(members: Members): Effect {
    return effectOf(members, this.newcomer);
  }

  /** Why a prediction refuses a place; undefined if it does not. */
  refusal(account: Judged, effect: Effect, isWarm: boolean): Refusal | undefined {
    return degradationRefusal({
      effect,
      usedMiB: this.usedMiB(account),
      mostMiB: mostMemory(account, this.search.settings.memoryPart),
      needMs: this.needMs(effect.own, isWarm),
      leftMs: this.leftMs,
    });
  }

  private needMs(own: number, isWarm: boolean): number {
    return neededMs(this.task.soloMs, own, this.startMs(isWarm));
  }

  private startMs(isWarm: boolean): number {
    return isWarm ? 0 : (this.task.startMs ?? 0);
  }

  private usedMiB(account: Judged): number {
    return account.capacityMiB - account.availableMiB + neededMiB(this.request, account);
  }
}

/** What places are looked at for. */
interface Look {
  request: PlacementRequest;
  limits: PlacementLimits;
  /** Places where an instance of the function idles. */
  warm: ReadonlySet<PlaceAccount>;
  judge: Judge;
}

/** The cheapest of the places, or the first that will do. */
function best(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits, judge: Judge): Scored | undefined {
  const { draws, random, settings } = judge.search;
  const accounts = accountsFor(ledger, limits);
  const isNew = limits.isNew === true;
  const warm = isNew ? new Set<PlaceAccount>() : ledger.withInstances(request, request.batch === 1);
  const look: Look = { request, limits, warm, judge };
  if (draws !== undefined && random !== undefined && draws < accounts.length) {
    return ofDrawn(drawn(accounts, draws, random), look);
  }
  // Instances first: no other place is better than one of them that is not risky.
  let found: Scored | undefined;
  if (settings.warmFirst > 0) {
    for (const account of look.warm) {
      if (limits.allowed?.has(account.id) !== false) found = scored(account, look, found) ?? found;
    }
    if (found?.joined !== undefined && !found.isRisky) return found;
  }
  return cheapest(ledger, accounts, look, found);
}

/** Of drawn places the cheapest, or the first that will do. */
function ofDrawn(accounts: Iterable<PlaceAccount>, look: Look): Scored | undefined {
  let found: Scored | undefined;
  for (const account of accounts) {
    found = scored(account, look, found) ?? found;
    if (found?.isRisky === false && look.judge.search.takesFirst) return found;
  }
  return found;
}

/** The cheapest of all places, `found` among them. */
function cheapest(
  ledger: Ledger,
  accounts: readonly PlaceAccount[],
  look: Look,
  found: Scored | undefined,
): Scored | undefined {
  const { request, warm, judge } = look;
  const all = ledger.accounts();
  const { cost, own } = judge.search.costs.of(judge.newcomer, ledger, all);
  const { availableMiB, freeMiB } = ledger.sums();
  const { memoryMiB } = request;
  const mostOwn = judge.mostOwn(warm.size > 0);
  const mayDo = (order: number): boolean =>
    cost[order]! >= 0 && !(own[order]! > mostOwn) && !(availableMiB[order]! < memoryMiB);
  const rank = (order: number, reclaims: boolean, than: number): number =>
    Number(freeMiB[order]! < memoryMiB) - Number(reclaims) || cost[order]! - than;
  // The place that is best by numbers is tried first, so that few others are tried at all.
  let likely = -1;
  for (const { order } of accounts) {
    if (!mayDo(order)) continue;
    if (likely < 0 || rank(order, freeMiB[likely]! < memoryMiB, cost[likely]!) < 0) likely = order;
  }
  if (likely < 0) return found;
  found = scored(all[likely]!, look, found) ?? found;
  for (const account of accounts) {
    const { order } = account;
    if (order === likely || !mayDo(order)) continue;
    // None is better than its numbers say, but for an instance that idles there.
    if (found?.isRisky === false && found.joined === undefined && !warm.has(account)) {
      if ((rank(order, found.reclaims, found.cost) || order - found.account.order) >= 0) continue;
    }
    found = scored(account, look, found) ?? found;
  }
  return found;
}

/** As many places alike of one node as the task needs, the cheapest first. */
function gang(ledger: Ledger, request: PlacementRequest, limits: PlacementLimits, judge: Judge): Scored[] | undefined {
  const look: Look = { request, limits, warm: new Set(), judge };
  const all = accountsFor(ledger, limits)
    .map((account) => scored(account, look, undefined))
    .filter((one) => one !== undefined);
  all.sort((one, other) => compare(one, other, judge.search));
  return alike(all, request.gpus);
}

/** A place that will do; undefined if it will not, or is no better than `best`. */
function scored(
  account: PlaceAccount,
  { request, limits, warm, judge }: Look,
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
  if (candidate === undefined) return undefined;
  const one = { ...candidate, cost, isRisky };
  return best !== undefined && compare(one, best, judge.search) >= 0 ? undefined : one;
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

/** As many places at random as `draws`, each once. */
function* drawn(accounts: readonly PlaceAccount[], draws: number, random: Random): Iterable<PlaceAccount> {
  const seen = new Set<number>();
  while (seen.size < draws) {
    const at = random.uint32() % accounts.length;
    if (seen.has(at)) continue;
    seen.add(at);
    yield accounts[at]!;
  }
}
