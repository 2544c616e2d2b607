import type { Rejection } from '@gpuwhisk/common/gpu';
import type { Grant, Place, Seat } from '../place/place.js';
import { gangFor, obstacle, occupy, roomsOf, roomsToKeep } from '../place/room.js';
import { isRefusal } from '../share/share.js';
import type { ShareOut } from '../share/share.js';
import { keptForAnother, mostRejections } from '../view/decision.js';
import type { Start, TaskRejection } from '../view/decision.js';
import type { Task } from '../view/view.js';
import type { Order } from './order.js';
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
 * Places the tasks one after the other, each on the GPU with the lowest score. A task that fits nowhere waits, and may be
 * overtaken until it is overdue. A share that the task's owner has fixed replaces the granted one.
 */
export function inTurns({ order: orderOf, share, place, placeName }: Stages): Planner {
  return {
    plan({ view, tasks }) {
      const { at } = view;
      const seats = roomsOf(view).map((room): Seat => ({ ...room, residents: [...room.gpu.running] }));
      const kept = new Set<Seat>();
      const starts: Start[] = [];
      const rejected: TaskRejection[] = [];
      const order: string[] = [];
      for (const { task, isOverdue } of orderOf(tasks, at)) {
        const { offers, refused } = offersTo(task, seats, { share, kept, at });
        const scored = offers.map((offer) => ({ ...offer, score: place(task, offer.seat, offer.grant) }));
        scored.sort((one, other) => one.score - other.score);
        const chosen = gangFor(
          scored.map(({ seat }) => seat),
          task,
        );
        const others = outscored(scored, chosen, task, placeName);
        for (const one of [...others, ...refused].slice(0, mostRejections)) rejected.push({ task: task.id, ...one });
        if (chosen !== undefined) {
          starts.push(startOn(chosen, task, scored));
          continue;
        }
        order.push(task.id);
        if (isOverdue) for (const seat of roomsToKeep(seats, task)) kept.add(seat);
      }
      return { starts, order, rejected };
    },
  };
}

interface Offer {
  seat: Seat;
  grant: Grant;
}

interface ScoredOffer extends Offer {
  score: number;
}

function offersTo(
  task: Task,
  seats: readonly Seat[],
  { share, kept, at }: { share: ShareOut; kept: ReadonlySet<Seat>; at: number },
): { offers: Offer[]; refused: Rejection[] } {
  const offers: Offer[] = [];
  const refused: Rejection[] = [];
  for (const seat of seats) {
    const given = (kept.has(seat) ? keptForAnother : obstacle(seat, task)) ?? share(task, seat, at);
    if (!isRefusal(given)) offers.push({ seat, grant: given });
    else if (refused.length < mostRejections) refused.push({ what: seat.gpu.id, ...given });
  }
  return { offers, refused };
}

/** The GPUs that would do and were not chosen, by score, with the score that decided. */
function outscored(
  scored: readonly ScoredOffer[],
  chosen: readonly Seat[] | undefined,
  task: Task,
  placeName: string,
): Rejection[] {
  const last = chosen && scored.findLast(({ seat }) => chosen.includes(seat));
  const others: Rejection[] = [];
  for (const { seat, score } of scored) {
    if (others.length === mostRejections) return others;
    if (chosen?.includes(seat) === true) continue;
    const { load, gpu } = seat;
    if (last === undefined || score < last.score) {
      others.push({ what: gpu.id, reason: 'too few alike on its node', numbers: { score, needed: task.gpus } });
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

function startOn(chosen: readonly Seat[], task: Task, scored: readonly ScoredOffer[]): Start {
  const [first, ...others] = chosen as [Seat, ...Seat[]];
  // Those chosen are among those scored.
  const { grant, score } = scored.find(({ seat }) => seat === first)!;
  const share = task.share ?? grant.share;
  for (const seat of chosen) {
    occupy(seat, task, share);
    seat.residents.push({ task, share });
  }
  return {
    task: task.id,
    gpu: first.gpu.id,
    ...(others.length > 0 && { alsoOn: others.map(({ gpu }) => gpu.id) }),
    share,
    reason: `score ${score.toFixed(3)}, the lowest of ${scored.length}`,
  };
}
