import { inTurn, isOverdue } from '../order/earliest-deadline.js';
import type { Decision, Policy, Snapshot, Start, Task, TaskRejection } from './policy.js';
import { deadlineAt } from './policy.js';
import { gangFor, obstacle, occupy, roomsOf, roomsToKeep } from '../place/room.js';
import type { Room } from '../place/room.js';

/** What becomes of a task whose SLO cannot be met any more: it runs as best effort, or is refused. */
export type Admission = 'best-effort' | 'refuse';

/**
 * Nothing is predicted: the earliest deadline goes first, to the GPU with the least share given away of those that have
 * the memory. A share is what the task's owner has fixed, else the whole GPU.
 */
export function leastLoaded(admission: Admission): Policy {
  return { name: 'least-loaded', decide: (snapshot) => decide(snapshot, admission) };
}

function decide(snapshot: Snapshot, admission: Admission): Decision {
  const { at, waiting } = snapshot;
  const isLate = (task: Task): boolean => deadlineAt(task) < at;
  const late = waiting.filter(isLate).map(({ id }) => id);
  const goOn = admission === 'refuse' ? waiting.filter((task) => !isLate(task)) : waiting;
  const turns = goOn.map((task) => ({ task, arrivedMs: task.arrivedAt, sloMs: isLate(task) ? undefined : task.sloMs }));
  const rooms = roomsOf(snapshot);
  const kept = new Set<Room>();
  const starts: Start[] = [];
  const rejected: TaskRejection[] = [];
  const order: string[] = [];
  for (const turn of inTurn(turns, at)) {
    const { task } = turn;
    const start = place(task, rooms, kept, rejected);
    if (start !== undefined) {
      starts.push(start);
      continue;
    }
    order.push(task.id);
    if (isOverdue(turn, at)) for (const room of roomsToKeep(rooms, task)) kept.add(room);
  }
  return {
    starts,
    refused: admission === 'refuse' ? late.map((task) => ({ task, reason: 'its SLO has passed' })) : [],
    bestEffort: admission === 'refuse' ? [] : late,
    order,
    rejected,
  };
}

function place(
  task: Task,
  rooms: readonly Room[],
  kept: ReadonlySet<Room>,
  rejected: TaskRejection[],
): Start | undefined {
  const share = task.share ?? task.maxShare ?? 1;
  const fit = rooms.filter((room) => {
    const problem = kept.has(room)
      ? { reason: 'kept for one that waits for longer', numbers: {} }
      : obstacle(room, task);
    if (problem !== undefined) rejected.push({ task: task.id, what: room.gpu.id, ...problem });
    return problem === undefined;
  });
  const isFull = (room: Room): number => Number(room.load + share > 1);
  const isCold = ({ gpu }: Room): number =>
    Number(!gpu.idle?.some((one) => one.function === task.function && one.namespace === task.namespace));
  fit.sort(
    (a, b) => isFull(a) - isFull(b) || isCold(a) - isCold(b) || a.load - b.load || b.availableMiB - a.availableMiB,
  );
  const gang = gangFor(fit, task);
  const [first, ...others] = gang ?? [];
  if (first === undefined || gang === undefined) return undefined;
  const { load } = first;
  for (const room of gang) occupy(room, task, share);
  return {
    task: task.id,
    gpu: first.gpu.id,
    ...(others.length > 0 && { alsoOn: others.map(({ gpu }) => gpu.id) }),
    share,
    reason: `least loaded: ${load.toFixed(2)} given away there`,
  };
}
