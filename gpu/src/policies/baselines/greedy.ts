import type { Admission } from '../least-loaded.js';
import { deadlineAt } from '../policy.js';
import type { Decision, Policy, Snapshot, Start, Task, TaskRejection } from '../policy.js';
import { gangFor, obstacle, occupy, roomsOf } from '../../place/room.js';
import type { Room } from '../../place/room.js';

/** A GPU with all who run there or were put there in this decision. */
export interface Seat extends Room {
  residents: { task: Task; share: number }[];
}

/** What a GPU would give a task. */
export interface Offer {
  share: number;
  /** The task takes the GPU with the least. */
  cost: number;
}

/** A policy that takes the tasks one after the other and puts each where it costs least, or lets it wait. */
export interface GreedyRule {
  name: string;
  /** Whom to serve first: below 0 for `a`. Equal ones are served as they came. */
  compare(a: Task, b: Task, at: number): number;
  /** What `seat`, which has the memory, would give the task; a text says why nothing. */
  offer(task: Task, seat: Seat, at: number): Offer | string;
}

/** Shares are sums of tenths, which floating point does not hold exactly. */
const rounding = 1e-9;

/** Whether a GPU has `share` of its SMs to give away. */
export function hasShare({ load }: Room, share: number): boolean {
  return load + share <= 1 + rounding;
}

/**
 * The policy that a rule makes. Whoever fits nowhere waits and may be overtaken; tasks whose SLO has passed go on as best
 * effort or are refused. A share that a task's owner has fixed takes the place of the one offered.
 */
export function greedy(rule: GreedyRule, admission: Admission): Policy {
  return { name: rule.name, decide: (snapshot) => decide(snapshot, rule, admission) };
}

function decide(snapshot: Snapshot, rule: GreedyRule, admission: Admission): Decision {
  const { at, waiting } = snapshot;
  const late = waiting.filter((task) => deadlineAt(task) < at).map(({ id }) => id);
  const isLate = new Set(late);
  const candidates = waiting
    .filter(({ id }) => admission === 'best-effort' || !isLate.has(id))
    .sort((a, b) => rule.compare(a, b, at) || a.arrivedAt - b.arrivedAt);
  const seats = roomsOf(snapshot).map((room): Seat => ({ ...room, residents: [...room.gpu.running] }));
  const starts: Start[] = [];
  const rejected: TaskRejection[] = [];
  const order: string[] = [];
  for (const task of candidates) {
    const start = place(task, seats, rule, at, rejected);
    if (start) starts.push(start);
    else order.push(task.id);
  }
  const refuses = admission === 'refuse';
  return {
    starts,
    refused: refuses ? late.map((task) => ({ task, reason: 'its SLO has passed' })) : [],
    bestEffort: refuses ? [] : late,
    order,
    rejected,
  };
}

function place(
  task: Task,
  seats: readonly Seat[],
  rule: GreedyRule,
  at: number,
  rejected: TaskRejection[],
): Start | undefined {
  const offers: { seat: Seat; offer: Offer }[] = [];
  for (const seat of seats) {
    const problem = obstacle(seat, task);
    const offer = problem ? problem.reason : rule.offer(task, seat, at);
    if (typeof offer === 'string') {
      rejected.push({
        task: task.id,
        what: seat.gpu.id,
        reason: offer,
        numbers: problem?.numbers ?? { load: seat.load },
      });
    } else offers.push({ seat, offer });
  }
  offers.sort((a, b) => a.offer.cost - b.offer.cost);
  const gang = gangFor(
    offers.map(({ seat }) => seat),
    task,
  );
  const [first, ...others] = gang ?? [];
  const chosen = offers.find(({ seat }) => seat === first);
  if (!first || !chosen) return undefined;
  const share = task.share ?? chosen.offer.share;
  for (const seat of gang ?? []) {
    occupy(seat, task, share);
    seat.residents.push({ task, share });
  }
  return {
    task: task.id,
    gpu: first.gpu.id,
    ...(others.length > 0 && { alsoOn: others.map(({ gpu }) => gpu.id) }),
    share,
    reason: `${rule.name}: cost ${chosen.offer.cost.toFixed(3)}`,
  };
}
