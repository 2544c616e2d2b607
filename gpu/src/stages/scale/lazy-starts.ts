// Tasks of functions that scale lazily: they wait for the instances that their functions have.
import { groupedBy } from '@gpuwhisk/common/collections';
import type { TaskRejection } from '../../view/decision.js';
import { functionKey } from '../../ledger/occupancy.js';
import type { Task, View } from '../../view/view.js';
import { keyOf } from './wanted.js';

/** A task that has waited for so long starts an instance itself, as those that are there may hang, ms. */
const patienceMs = 30_000;

/** Instances of a function: how many there are, and how many tasks those of each place take now. */
interface Taking {
  instances: number;
  /** By place, of an instance that spans several by the first. */
  places: Map<string, { room: number; gpus: readonly string[] }>;
}

/** Tasks that may be placed now, and those that wait, with the reason. */
interface Divided {
  tasks: readonly Task[];
  held: readonly TaskRejection[];
}

/**
 * Lets tasks of one GPU go only where an instance of their function takes them, the first to arrive first, and holds back
 * the others: the scale stage says when there are more instances. The first task of a function without an instance starts one.
 */
export function onInstances(view: View, tasks: readonly Task[]): Divided {
  const left = new Map<string, Task>();
  const held: TaskRejection[] = [];
  for (const own of groupedBy(tasks, keyOf).values()) {
    const bound = own.filter(({ gpus, arrivedAt }) => gpus === 1 && view.at - arrivedAt < patienceMs);
    const [first] = bound;
    const isBound = new Set(bound);
    for (const task of own) if (!isBound.has(task)) left.set(task.id, task);
    if (first === undefined) continue;
    const taking = takingOf(view, first);
    let starts = taking.instances === 0 ? 1 : 0;
    for (const task of bound.toSorted((one, other) => one.arrivedAt - other.arrivedAt)) {
      const place = freePlace(taking, task);
      if (place !== undefined) {
        place.room -= 1;
        left.set(task.id, { ...task, allowed: new Set(place.gpus) });
      } else if (starts > 0) {
        starts -= 1;
        left.set(task.id, task);
      } else held.push(rejectionOf(task, taking));
    }
  }
  // In the order in which they were given.
  return { tasks: tasks.flatMap(({ id }) => left.get(id) ?? []), held };
}

function freePlace({ places }: Taking, { allowed }: Task): { room: number; gpus: readonly string[] } | undefined {
  for (const one of places.values()) {
    if (one.room > 0 && one.gpus.every((gpu) => allowed?.has(gpu) !== false)) return one;
  }
  return undefined;
}

function rejectionOf({ id, batch }: Task, { instances, places }: Taking): TaskRejection {
  const [what = 'instances of its function'] = places.keys();
  const reason = 'its instances are busy, and the scale stage launches others only for load that lasts';
  return { task: id, what, reason, numbers: { instances, batch } };
}

/** The instances of a task's function on healthy places. */
function takingOf({ ledger: open }: View, task: Task): Taking {
  const taking: Taking = { instances: 0, places: new Map() };
  const add = (place: string, room: number, gpus: readonly string[] = [place]): void => {
    taking.instances += 1;
    const known = taking.places.get(place);
    if (known === undefined) taking.places.set(place, { room, gpus });
    else known.room += room;
  };
  const key = keyOf(task);
  const work = { action: task.function, namespace: task.namespace };
  const { batch } = task.request ?? { batch: 1 };
  const there = [...open.ledger.withInstances(work, false)].sort((one, other) => one.order - other.order);
  for (const { id, health, place, occupants } of there) {
    if (health?.state !== 'healthy' || !open.isOpen(place.node.invoker)) continue;
    for (const { action = '', namespace = '', users, container, gang = [id] } of occupants) {
      // An instance of several devices is there on each.
      if (functionKey({ action, namespace }) !== key || gang[0] !== id) continue;
      const idle = Number(users === 0 && container !== undefined);
      // As `instanceFor` has it: while one batch runs the next one gathers, but on one device only.
      if (gang.length === 1 && batch > 1) add(id, Math.max(0, 2 * batch - users));
      else add(id, idle, gang);
    }
  }
  return taking;
}
