// Placement by predicted degradation (SMORE, thesis section 3.3: equations 3.9 to 3.11, algorithm 3.1).
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders and drawn indices are those of the ledger's accounts; an effect has an element for each bound */
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

/** Why a place that facts allow will not do, by prediction; else its cost. */
type Judged = { cost: number; refusal?: undefined } | { refusal: Refusal };

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
  const judge = judgeOf(task, request, stamp.at, search);
  const chosen =
    request.gpus > 1 ? gang(ledger, request, limits, judge, search) : best(ledger, request, limits, judge, search);
  const alternatives = alternativesOf(ledger, request, limits, chosen);
  // Counted now: reasons are made when they are read, and the accounts go on.
  const judged = new Map(
    alternatives.map(({ id, joined }) => {
      const account = ledger.account(id);
      return [id, account && judge(account, joined !== undefined)];
    }),
  );
  const chosenCost = chosen?.at(-1)?.cost;
  return choiceOf(chosen && placementOf(chosen, request, stamp), chosen?.[0]?.joined?.id, alternatives, (passed) =>
    rejectionsOf(passed, request, {
      refuses: ({ id }) => judged.get(id)?.refusal,
      why: ({ account: { id } }) => whyNot(judged.get(id), chosenCost, search, request),
      compare: (one, other) => costIn(judged.get(one.id)) - costIn(judged.get(other.id)),
    }),
  );
}

function costIn(judged: Judged | undefined): number {
  return judged?.refusal === undefined ? (judged?.cost ?? 0) : Infinity;
}

function whyNot(
  judged: Judged | undefined,
  chosenCost: number | undefined,
  { takesFirst, draws }: DegradationSearch,
  { gpus }: PlacementRequest,
): Refusal {
  const cost = costIn(judged);
  if (chosenCost === undefined) return { reason: `${gpus} alike are needed on one node`, numbers: { cost } };
  const numbers = { cost, chosenCost };
  if (cost > chosenCost) return { reason: 'more degradation is predicted there than on the chosen one', numbers };
  if (takesFirst || draws !== undefined) return { reason: 'the chosen one was found first', numbers };
  return { reason: 'an instance idles on the chosen one, or it is no riskier and is listed first', numbers };
}

/** Judges a place by prediction for one task. */
type Judge = (account: PlaceAccount, isWarm: boolean) => Judged;

function judgeOf(task: Task, request: PlacementRequest, at: number, { effects, settings }: DegradationSearch): Judge {
  const { trainWeight, perRequest } = settings;
  const newcomer = effects.newcomer(functionKey(request), thousandths(request.share.smLimit));
  const { soloMs, startMs = 0 } = task;
  const leftMs = deadlineAt(task) - at;
  return (account, isWarm) => {
    const reserve = reserveRefusal(account, request, settings);
    if (reserve !== undefined) return { refusal: reserve };
    const { bounds, suffers } = effects.standingOf(account);
    if (suffers)
      return {
        refusal: { reason: 'a workload is slower there than it tolerates, or has stopped reporting', numbers: {} },
      };
    const { workloads, train, own } = effects.effectOn(account, newcomer);
    for (let one = 0; one < bounds.length; one += 1) {
      if (workloads[one]! <= bounds[one]!) continue;
      const numbers = { degradation: workloads[one]!, bound: bounds[one]! };
      return { refusal: { reason: 'a workload would become slower there than it tolerates', numbers } };
    }
    const needMs = soloMs === undefined ? 0 : soloMs * (1 + own) + (isWarm ? 0 : startMs);
    if (needMs > leftMs)
      return { refusal: { reason: 'it would miss its deadline there', numbers: { needMs, leftMs } } };
    return { cost: trainWeight * train + (1 - trainWeight) * own + perRequest * account.busy };
  };
}

/** The cheapest of the places, or the first that will do. */
function best(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  judge: Judge,
  search: DegradationSearch,
): Scored[] | undefined {
  let found: Scored | undefined;
  const warm = ledger.withInstances(request, request.batch === 1);
  for (const account of drawn(ledger, request, limits, search)) {
    const one = scored(account, request, limits, warm, judge, search);
    if (one === undefined) continue;
    if (search.takesFirst && !one.isRisky) return [one];
    if (found === undefined || compare(one, found, search) < 0) found = one;
  }
  return found && [found];
}

/** As many places alike of one node as the task needs, the cheapest first. */
function gang(
  ledger: Ledger,
  request: PlacementRequest,
  limits: PlacementLimits,
  judge: Judge,
  search: DegradationSearch,
): Scored[] | undefined {
  const none: ReadonlySet<PlaceAccount> = new Set();
  const all = accountsFor(ledger, limits)
    .map((account) => scored(account, request, limits, none, judge, search))
    .filter((one) => one !== undefined);
  all.sort((one, other) => compare(one, other, search));
  return alike(all, request.gpus) as Scored[] | undefined;
}

function scored(
  account: PlaceAccount,
  request: PlacementRequest,
  limits: PlacementLimits,
  warm: ReadonlySet<PlaceAccount>,
  judge: Judge,
  { risky }: DegradationSearch,
): Scored | undefined {
  const joined = warm.has(account) ? instanceFor(account.occupants, request) : undefined;
  const candidate = candidateAt(account, request, limits, joined);
  if (candidate === undefined) return undefined;
  const judged = judge(account, joined !== undefined);
  if (judged.refusal !== undefined) return undefined;
  return { ...candidate, cost: judged.cost, isRisky: risky.has(account.id) };
}

/** Equation 3.9: the reserve is for what several processes lose to each other; one alone may take all that there is. */
function reserveRefusal(
  account: PlaceAccount,
  request: PlacementRequest,
  { memoryPart }: DegradationSettings,
): Refusal | undefined {
  if (account.staying.length === 0 && account.workloads === 0) return undefined;
  const usedMiB = account.capacityMiB - account.availableMiB + neededMiB(request, account);
  const mostMiB = memoryPart * account.capacityMiB;
  if (usedMiB <= mostMiB) return undefined;
  return { reason: 'too little memory would be left beside others', numbers: { usedMiB, mostMiB } };
}

function compare(one: Scored, other: Scored, { settings }: DegradationSearch): number {
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
