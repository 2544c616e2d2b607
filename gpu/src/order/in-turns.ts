import type { Rejection } from '@gpuwhisk/common/gpu';
import type { CandidateGpu, Grant, Place, Score } from '../place/place.js';
import { refusing } from '../place/fact-filters.js';
import type { Refusal } from '../place/fact-filters.js';
import { gangFor, obstacle, occupy, gpuAccountsOf, gpusToKeep, workOf } from '../place/gpu-account.js';
import { isRefusal } from '../share/share.js';
import type { ShareOut } from '../share/share.js';
import { keptForAnother, mostRejections } from '../view/decision.js';
import type { Start, TaskRejection } from '../view/decision.js';
import type { Task, View } from '../view/view.js';
import type { Order, Turn } from './order.js';
import type { Planner } from './plan.js';

/** Stages that decide one after the other. */
export interface Stages {
  order: Order;
  share: ShareOut;
  place: Place;
  /** The name of `place`, for reasons. */
  placeName: string;
}

/**
 * Places the tasks one after the other, each on the GPU with the lowest score; of the GPUs that would do, those where a
 * process of its function idles come first. A task that fits nowhere waits, and may be overtaken until it is overdue. A
 * share that the task's owner has fixed replaces the granted one.
 */
export function inTurns({ order: orderOf, share, place, placeName }: Stages): Planner {
  return {
    plan({ view, tasks }) {
      const { at } = view;
      const candidates = candidatesOf(view);
      const scoreOf = place(view);
      const kept = new Set<CandidateGpu>();
      const starts: Start[] = [];
      const rejected: TaskRejection[] = [];
      const order: string[] = [];
      let wakeAt = Infinity;
      for (const { task, isOverdue, waitsUntil } of singles(orderOf(tasks, at, view.workloads, view.ledger.ledger))) {
        if (waitsUntil !== undefined) {
          order.push(task.id);
          wakeAt = Math.min(wakeAt, waitsUntil);
          continue;
        }
        const { offers: scored, refused } = offersTo(task, candidates, { share, scoreOf, kept, at });
        scored.sort((one, other) => Number(other.isWarm) - Number(one.isWarm) || one.score - other.score);
        const chosen = gangFor(
          scored.map(({ candidate }) => candidate),
          task,
        );
        const others = scored.length === 0 ? none : outscored(scored, chosen, task, placeName);
        for (const { what, reason, numbers } of others) rejected.push({ task: task.id, what, reason, numbers });
        for (let i = 0; i < refused.length && others.length + i < mostRejections; i += 1) {
          const { what, reason, numbers } = refused[i] as Rejection;
          rejected.push({ task: task.id, what, reason, numbers });
        }
        if (chosen !== undefined) {
          starts.push(startOn(chosen, task, scored));
          continue;
        }
        order.push(task.id);
        if (isOverdue) for (const candidate of gpusToKeep(candidates, task)) kept.add(candidate);
      }
      return { starts, order, rejected, ...(wakeAt < Infinity && { wakeAt }) };
    },
    ...(orderOf.gathers && { gathers: true }),
    instancePlacesIn(view) {
      const candidates = candidatesOf(view);
      const scoreOf = place(view);
      return (task, allowed) => {
        // The instance is ready when requests come.
        const ready = { ...task, startMs: 0, allowed };
        const { offers } = offersTo(ready, candidates, { share, scoreOf, kept: new Set(), at: view.at });
        offers.sort((one, other) => one.score - other.score);
        const chosen = gangFor(
          offers.map(({ candidate }) => candidate),
          ready,
        );
        if (chosen === undefined) return undefined;
        const { gpu, alsoOn = [] } = startOn(chosen, ready, offers);
        return [gpu, ...alsoOn];
      };
    },
    observe: (run) => orderOf.observe?.(run),
    saved: () => orderOf.saved?.(),
    restore: (saved) => orderOf.restore?.(saved),
  };
}

/** The turns with each request of a batch by itself. */
function singles(turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some(({ batch }) => batch !== undefined && batch.others.length > 0)) return turns;
  return turns.flatMap((turn) => [turn, ...(turn.batch?.others ?? []).map((task) => ({ ...turn, task }))]);
}

function candidatesOf(view: View): CandidateGpu[] {
  return gpuAccountsOf(view).map((account) => ({ ...account, residents: [...account.gpu.running] }));
}

const none: readonly Rejection[] = [];

interface ScoredOffer {
  candidate: CandidateGpu;
  grant: Grant;
  score: number;
  /** A process idles there in which the task would start. */
  isWarm: boolean;
}

function hasProcess({ gpu: { idle = [] } }: CandidateGpu, { function: name, namespace }: Task, share: number): boolean {
  return idle.some((one) => one.function === name && one.namespace === namespace && one.share >= share);
}

function offersTo(
  task: Task,
  candidates: readonly CandidateGpu[],
  { share, scoreOf, kept, at }: { share: ShareOut; scoreOf: Score; kept: ReadonlySet<CandidateGpu>; at: number },
): { offers: ScoredOffer[]; refused: Rejection[] } {
  const offers: ScoredOffer[] = [];
  const refuse = ({ gpu }: CandidateGpu, { reason, numbers }: Refusal): void => {
    if (refused.length < mostRejections) refused.push({ what: gpu.id, reason, numbers });
  };
  const refused: Rejection[] = [];
  const work = workOf(task);
  for (const candidate of candidates) {
    // Most waiting tasks are refused by most GPUs, and only the first refusals are told in words.
    if (refused.length >= mostRejections && refusing(candidate, work) !== undefined) continue;
    const given = (kept.has(candidate) ? keptForAnother : obstacle(candidate, task)) ?? share(task, candidate, at);
    if (isRefusal(given)) {
      refuse(candidate, given);
      continue;
    }
    const score = scoreOf(task, candidate, given);
    if (typeof score !== 'number') refuse(candidate, score);
    else
      offers.push({ candidate, grant: given, score, isWarm: hasProcess(candidate, task, task.share ?? given.share) });
  }
  return { offers, refused };
}

/** The GPUs that would do and were not chosen, by score, with the score that decided. */
function outscored(
  scored: readonly ScoredOffer[],
  chosen: readonly CandidateGpu[] | undefined,
  task: Task,
  placeName: string,
): Rejection[] {
  const last = chosen && scored.findLast(({ candidate }) => chosen.includes(candidate));
  const others: Rejection[] = [];
  for (const { candidate, score, isWarm } of scored) {
    if (others.length === mostRejections) return others;
    if (chosen?.includes(candidate) === true) continue;
    const { load, gpu } = candidate;
    if (last === undefined || isBefore({ score, isWarm }, last)) {
      others.push({ what: gpu.id, reason: 'too few alike on its node', numbers: { score, needed: task.gpus } });
      continue;
    }
    if (last.isWarm && !isWarm) {
      const numbers = { score, chosenScore: last.score, load };
      others.push({ what: gpu.id, reason: 'no process of the function idles there', numbers });
      continue;
    }
    const reason =
      score > last.score
        ? `its score by '${placeName}' is higher than that of the chosen one`
        : `its score by '${placeName}' is that of the chosen one, which is listed first`;
    others.push({ what: gpu.id, reason, numbers: { score, chosenScore: last.score, load } });
  }
  return others;
}

function isBefore(one: Pick<ScoredOffer, 'score' | 'isWarm'>, other: ScoredOffer): boolean {
  return one.isWarm === other.isWarm ? one.score < other.score : one.isWarm;
}

function startOn(chosen: readonly CandidateGpu[], task: Task, scored: readonly ScoredOffer[]): Start {
  const [first, ...others] = chosen as [CandidateGpu, ...CandidateGpu[]];
  // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- those chosen are among those scored
  const { grant, score } = scored.find(({ candidate }) => candidate === first)!;
  const share = task.share ?? grant.share;
  const { request = share } = task.share === undefined ? grant : {};
  for (const candidate of chosen) {
    occupy(candidate, task, share);
    candidate.residents.push({ task, share });
  }
  return {
    task: task.id,
    gpu: first.gpu.id,
    ...(others.length > 0 && { alsoOn: others.map(({ gpu }) => gpu.id) }),
    share,
    ...(request < share && { request }),
    reason: `score ${score.toFixed(3)}, the first of ${scored.length}`,
  };
}
