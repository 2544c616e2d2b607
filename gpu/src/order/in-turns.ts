import type { Grant, Place, Seat } from '../place/place.js';
import { gangFor, obstacle, occupy, roomsOf, roomsToKeep } from '../place/room.js';
import type { ShareOut } from '../share/share.js';
import type { Start, TaskRejection } from '../view/decision.js';
import type { Task } from '../view/view.js';
import type { Order } from './order.js';
import type { Planner } from './plan.js';

/** Stages that decide one after the other. */
export interface Stages {
  order: Order;
  share: ShareOut;
  place: Place;
}

/**
 * Takes the tasks one after the other and puts each where its place stage gives it the least, or lets it wait. Whoever fits
 * nowhere may be overtaken until it is overdue. A share that a task's owner has fixed takes the place of the one granted.
 */
export function inTurns({ order: orderOf, share, place }: Stages): Planner {
  return {
    plan({ view, tasks }) {
      const { at } = view;
      const seats = roomsOf(view).map((room): Seat => ({ ...room, residents: [...room.gpu.running] }));
      const kept = new Set<Seat>();
      const starts: Start[] = [];
      const rejected: TaskRejection[] = [];
      const order: string[] = [];
      for (const { task, isOverdue } of orderOf(tasks, at)) {
        const offers = offersTo(task, seats, { share, kept, at }, rejected);
        const start = best(task, offers, place);
        if (start !== undefined) {
          starts.push(start);
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

function offersTo(
  task: Task,
  seats: readonly Seat[],
  { share, kept, at }: { share: ShareOut; kept: ReadonlySet<Seat>; at: number },
  rejected: TaskRejection[],
): Offer[] {
  const offers: Offer[] = [];
  for (const seat of seats) {
    const problem = kept.has(seat) ? keptForAnother : obstacle(seat, task);
    const grant = problem === undefined ? share(task, seat, at) : problem.reason;
    if (typeof grant !== 'string') offers.push({ seat, grant });
    else {
      const numbers = problem?.numbers ?? { load: seat.load };
      rejected.push({ task: task.id, what: seat.gpu.id, reason: grant, numbers });
    }
  }
  return offers;
}

const keptForAnother = { reason: 'kept for one that waits for longer', numbers: {} };

function best(task: Task, offers: readonly Offer[], place: Place): Start | undefined {
  const scored = offers.map((offer) => ({ ...offer, score: place(task, offer.seat, offer.grant) }));
  scored.sort((one, other) => one.score - other.score);
  const gang = gangFor(
    scored.map(({ seat }) => seat),
    task,
  );
  const [first, ...others] = gang ?? [];
  const chosen = scored.find(({ seat }) => seat === first);
  if (gang === undefined || first === undefined || chosen === undefined) return undefined;
  const share = task.share ?? chosen.grant.share;
  for (const seat of gang) {
    occupy(seat, task, share);
    seat.residents.push({ task, share });
  }
  return {
    task: task.id,
    gpu: first.gpu.id,
    ...(others.length > 0 && { alsoOn: others.map(({ gpu }) => gpu.id) }),
    share,
    reason: `score ${chosen.score.toFixed(3)}, the least of ${scored.length}`,
  };
}
