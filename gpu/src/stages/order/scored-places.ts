// Placement by a score: each place gives the task a share and has a score, and the lowest score wins.
import type { Rejection } from '@gpuwhisk/common/gpu';
import { isRefusal } from '../share/share.js';
import type { ShareOut } from '../share/share.js';
import { isPlaced } from '../../ledger/account.js';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import { keptForAnother, mostRejections } from '../../view/decision.js';
import type { Occupant } from '../../ledger/occupancy.js';
import { kindOf } from '../../ledger/places.js';
import { requestOfTask } from '../../view/requests.js';
import { tasksOn } from '../../view/running.js';
import type { KnownRuns, RunningTask, Task } from '../../view/view.js';
import { accountsFor, idleInstances, shareInInstance } from '../place/candidate.js';
import type { PlacementLimits, PlacementStamp } from '../place/candidate.js';
import { refusalOf, refusing } from '../place/fact-filters.js';
import type { Refusal } from '../place/fact-filters.js';
import { gangOf } from '../place/gangs.js';
import { bindTo } from '../place/least-loaded.js';
import type { CandidatePlace, Grant, PassView, Placing, Score, Scores, Waiting } from '../place/place.js';

/** A place that would do. */
interface Offer {
  candidate: CandidatePlace;
  grant: Grant;
  score: number;
  /** An instance of the function idles there in which the task would start. */
  isWarm: boolean;
}

/**
 * Places a task where the score of `scores` is lowest, at the share that `share` gives it there; of the places that would do,
 * those where an instance of its function idles come first. A share that the task's owner has fixed replaces the granted one.
 * `name`: that of the scores, for reasons.
 */
export function placedByScore(share: ShareOut, scores: Scores, name: string): Placing {
  return {
    judgesTasks: true,
    requestOf: requestOfTask,
    begin(view, turns) {
      const search = new ScoredSearch(view, turns, { share, score: scores(view), name });
      return (request, limits, stamp, task) => search.placeIn(request, limits, stamp, task);
    },
  };
}

class ScoredSearch {
  private readonly runs: KnownRuns;
  /** What runs on places, for as long as their occupants are those. */
  private readonly residents = new Map<PlaceAccount, { of: readonly Occupant[]; tasks: readonly RunningTask[] }>();

  constructor(
    private readonly view: PassView,
    turns: readonly Waiting[],
    private readonly rule: { share: ShareOut; score: Score; name: string },
  ) {
    const { at, runs } = view;
    const tasks = new Map(turns.map(({ task }) => [task.id, task]));
    // What this pass has placed counts as running.
    this.runs = (id) => {
      const task = tasks.get(id);
      return runs(id) ?? (task && { task, startedAt: at });
    };
  }

  placeIn(request: PlacementRequest, limits: PlacementLimits, stamp: PlacementStamp, task: Task): PlacementChoice {
    const { ledger, isOpen } = this.view.ledger;
    const { offers, refused } = this.offersTo(task, request, limits);
    const isNew = limits.isNew === true;
    offers.sort((one, other) => (isNew ? 0 : rankOf(one) - rankOf(other)) || one.score - other.score);
    const unbound: Rejection[] = [];
    for (let left: readonly Offer[] = offers; ;) {
      const chosen = gangOf(left, request.gpus, ({ candidate }) => candidate.account.place);
      const others = outscored(left, chosen, request, this.rule.name);
      const rejected = [...others, ...unbound, ...refused].slice(0, mostRejections);
      const [first] = chosen ?? [];
      if (chosen === undefined || first === undefined) return { rejected };
      const { occupants } = first.candidate.account;
      const given =
        task.share === undefined
          ? shareInInstance(isNew ? [] : occupants, task, first.grant, request.share)
          : request.share;
      const ids = chosen.map(({ candidate }) => candidate.account.id);
      const bound = bindTo(ledger, { ...request, share: given }, { ids, isOpen, isNew }, stamp);
      if (isPlaced(bound)) {
        const { placement, reuses } = bound;
        return { placement, ...(reuses !== undefined && { reuses }), rejected };
      }
      // Such as a place that leaves, whose idle instance is not for this caller or share.
      unbound.push(...bound.rejected);
      left = left.filter((offer) => !chosen.includes(offer));
    }
  }

  private offersTo(
    task: Task,
    request: PlacementRequest,
    limits: PlacementLimits,
  ): { offers: Offer[]; refused: Rejection[] } {
    const { ledger, isOpen } = this.view.ledger;
    const offers: Offer[] = [];
    const refused: Rejection[] = [];
    for (const account of accountsFor(ledger, limits)) {
      if (!isOpen(account.place.node.invoker)) continue;
      // Most waiting tasks are refused by most places, and only the first refusals are told in words.
      if (refused.length >= mostRejections && refusing(account, request, joinedOn(account, task, limits)) !== undefined)
        continue;
      const found = this.offerOf(account, task, request, limits);
      if (!('reason' in found)) offers.push(found);
      else if (refused.length < mostRejections) refused.push({ what: account.id, ...found });
    }
    return { offers, refused };
  }

  private offerOf(
    account: PlaceAccount,
    task: Task,
    request: PlacementRequest,
    limits: PlacementLimits,
  ): Offer | Refusal {
    const { share, score } = this.rule;
    const { kept, isNew = false } = limits;
    const idle = isNew ? [] : idleInstances(account.occupants, task);
    const joined = joinedOn(account, task, limits);
    const refusal = kept.has(account.id)
      ? keptForAnother
      : (refusalOf(account, request, joined) ?? limits.predicted?.(account, joined));
    if (refusal !== undefined) return refusal;
    const { place } = account;
    const candidate: CandidatePlace = { account, kind: kindOf(place), residents: this.residentsOf(account) };
    // An instance that is made ahead of requests is ready when they come.
    const asked = isNew ? { ...task, startMs: 0 } : task;
    const grant = share(asked, candidate, this.view.at);
    if (isRefusal(grant)) return grant;
    const scored = score(asked, candidate, grant);
    if (typeof scored !== 'number') return scored;
    const least = task.share ?? grant.share;
    return { candidate, grant, score: scored, isWarm: idle.some(({ shareClass }) => shareClass / 100 >= least) };
  }

  private residentsOf(account: PlaceAccount): readonly RunningTask[] {
    const { occupants } = account;
    const { at, ledger } = this.view;
    const known = this.residents.get(account);
    if (known?.of === occupants) return known.tasks;
    const tasks = tasksOn({ at, ledger, runs: this.runs }, account);
    this.residents.set(account, { of: occupants, tasks });
    return tasks;
  }
}

/** The idle instance by which a place that leaves still takes the task. */
function joinedOn({ health, occupants }: PlaceAccount, task: Task, { isNew }: PlacementLimits): Occupant | undefined {
  return health?.state === 'leaving' && isNew !== true ? idleInstances(occupants, task)[0] : undefined;
}

function rankOf({ isWarm }: Offer): number {
  return isWarm ? 0 : 1;
}

/** The places that would do and were not chosen, by score, with the score that decided. */
function outscored(
  offers: readonly Offer[],
  chosen: readonly Offer[] | undefined,
  { gpus }: PlacementRequest,
  name: string,
): Rejection[] {
  const last = chosen?.at(-1);
  const lastAt = last === undefined ? -1 : offers.indexOf(last);
  const others: Rejection[] = [];
  for (const [at, offer] of offers.entries()) {
    if (others.length === mostRejections) return others;
    if (chosen?.includes(offer) === true) continue;
    const { score, isWarm } = offer;
    const { id, load } = offer.candidate.account;
    if (last === undefined || at < lastAt) {
      others.push({ what: id, reason: 'too few alike on its node', numbers: { score, needed: gpus } });
      continue;
    }
    const numbers = { score, chosenScore: last.score, load };
    if (last.isWarm && !isWarm) {
      others.push({ what: id, reason: 'no process of the function idles there', numbers });
      continue;
    }
    const reason =
      score > last.score
        ? `its score by '${name}' is higher than that of the chosen one`
        : `its score by '${name}' is that of the chosen one, which is listed first`;
    others.push({ what: id, reason, numbers });
  }
  return others;
}
