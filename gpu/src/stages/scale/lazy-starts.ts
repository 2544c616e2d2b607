// Tasks of functions that scale lazily: they wait for the instances that their functions have.
import { groupedBy } from '@gpuwhisk/common/collections';
import type { TaskRejection } from '../../view/decision.js';
import { functionKey } from '../../ledger/occupancy.js';
import type { Task, View } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';
import { keyOf } from './wanted.js';

/** A task that has waited for so long starts an instance itself, as those that are there may hang, ms. */
const patienceMs = 30_000;

/** An instance that tasks of its function may go to. */
interface Instance {
  isLoading: boolean;
  /** The first of its places, by id. */
  place: string;
  /** All of its places, by id. */
  gpus: readonly string[];
  /** Requests that are in it, and the most that it takes. */
  users: number;
  most: number;
}

/** Tasks that may be placed now, and those that wait, with the reason. */
interface Divided {
  tasks: readonly Task[];
  held: readonly TaskRejection[];
}

/**
 * Lets tasks of one GPU go only where an instance of their function takes them, and holds back the others: the scale stage says
 * when there are more instances. Those that can still meet their SLO go first, by arrival, then the others. The first task of a
 * function without an instance starts one.
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
    const instances = instancesOf(view, first);
    // While others are there, none waits in one that is yet to load.
    const there = instances.filter(({ isLoading }) => !isLoading);
    const taking = there.length > 0 ? there : instances;
    let starts = instances.length === 0 ? 1 : 0;
    for (const task of inServiceOrder(bound, view.at)) {
      const instance = leastBusy(taking, task);
      if (instance !== undefined) {
        instance.users += 1;
        left.set(task.id, { ...task, allowed: new Set(instance.gpus) });
      } else if (starts > 0) {
        starts -= 1;
        left.set(task.id, task);
      } else held.push(rejectionOf(task, instances));
    }
  }
  // In the order in which they were given.
  return { tasks: tasks.flatMap(({ id }) => left.get(id) ?? []), held };
}

/** Tasks that can meet their SLO if they run now, by arrival, then the others, which late ones have joined as best effort. */
function inServiceOrder(tasks: readonly Task[], at: number): Task[] {
  const isLate = (task: Task): number => Number(task.sloMs === undefined || deadlineAt(task) < at + servedMs(task));
  return tasks.toSorted((one, other) => isLate(one) - isLate(other) || one.arrivedAt - other.arrivedAt);
}

/** The least time that a task takes in an instance, ms: of a profiled batch at its limit, or else alone; 0 if unknown. */
function servedMs({ profiledShares = [], soloMs = 0 }: Task): number {
  if (profiledShares.length === 0) return soloMs;
  return Math.min(...profiledShares.map(({ ms, limitMs = ms }) => limitMs));
}

function leastBusy(instances: readonly Instance[], { allowed }: Task): Instance | undefined {
  let best: Instance | undefined;
  for (const one of instances) {
    if (one.users >= one.most || one.gpus.some((gpu) => allowed?.has(gpu) === false)) continue;
    if (best === undefined || one.users < best.users) best = one;
  }
  return best;
}

function rejectionOf({ id, batch }: Task, instances: readonly Instance[]): TaskRejection {
  const what = instances[0]?.place ?? 'instances of its function';
  const reason = 'its instances are busy, and the scale stage launches others only for load that lasts';
  return { task: id, what, reason, numbers: { instances: instances.length, batch } };
}

/** The instances of a task's function on healthy places, in the ledger's order. */
function instancesOf({ ledger: open }: View, task: Task): Instance[] {
  const key = keyOf(task);
  const work = { action: task.function, namespace: task.namespace };
  const { batch } = task.request ?? { batch: 1 };
  const there = [...open.ledger.withInstances(work, false)].sort((one, other) => one.order - other.order);
  const found: Instance[] = [];
  for (const {
    id: place,
    health,
    place: { node },
    occupants,
  } of there) {
    if (health?.state !== 'healthy' || !open.isOpen(node.invoker)) continue;
    for (const { action = '', namespace = '', users, container, isLoading = false, gang = [place] } of occupants) {
      // An instance of several devices is there on each.
      if (functionKey({ action, namespace }) !== key || gang[0] !== place) continue;
      // As `instanceFor` has it: while one batch runs the next one gathers, but on one device only.
      const most = gang.length === 1 && batch > 1 ? 2 * batch : Number(container !== undefined);
      found.push({ isLoading, place, gpus: gang, users, most });
    }
  }
  return found;
}
