import { defaultBestEffortMs, isOverdue } from '../order/earliest-deadline.js';
import { ArrivalLoad } from '../order/arrival-load.js';
import { exchange } from '../order/exchange.js';
import { Holdings } from '../order/holdings.js';
import { horizonAt, isCritical } from '../order/horizon.js';
import { NamespaceTurns } from '../order/namespace-turns.js';
import type { NamespaceQueue } from '../order/namespace-turns.js';
import { Progress } from '../order/progress.js';
import { PredictionCache } from '../order/set-predictions.js';
import { finalShares } from '../order/shares.js';
import { firstQueueOn, isWarmOn, outlookOf, sufficientShare, unmeasuredMs } from '../order/sub-queue.js';
import type { Member, SubQueue } from '../order/sub-queue.js';
import { FirstQueues, laterQueues } from '../order/sub-queues.js';
import type { PlanOptions } from '../order/sub-queues.js';
import type { Quotas } from '../quota/quotas.js';
import type { Admission } from './least-loaded.js';
import { deadlineAt } from './policy.js';
import type { Decision, ObservedRun, Policy, SchedulingEvent, Snapshot, Start, Task } from './policy.js';
import { roomsOf } from './rooms.js';
import type { PolicyNeeds } from './registry.js';

/** Runs whose end may be awaited, to correct what they were charged. */
const maxCharged = 10_000;

/** What can be set of the policy. */
export interface FaashareOptions extends PlanOptions {
  /** When best effort is due after its arrival, and when nobody overtakes a task any more at the earliest, ms. */
  bestEffortMs: number;
  /** What the tasks that come in an exchange may take more than those that go, as a part of the GPU's memory. */
  tolerance: number;
  /** Exchanges that are tried by prediction in one decision, at most. */
  maxExchanges: number;
}

export const defaultFaashareOptions: FaashareOptions = {
  minGain: 0.05,
  maxLoad: 2,
  maxLoadOver: 0.6,
  maxLater: 16,
  bestEffortMs: defaultBestEffortMs,
  tolerance: 0.02,
  maxExchanges: 4,
};

/** What FaaShare's policy is made of. */
export interface FaashareNeeds {
  predictorOf: PolicyNeeds['predictorOf'];
  admission: Admission;
  /** Shares of those that run together; absent: what each fills. */
  quotas?: Quotas;
  options?: Partial<FaashareOptions>;
}

/** A task, and whether nobody may overtake it. */
interface Turn {
  task: Task;
  isOverdue: boolean;
  isCritical: boolean;
}

/**
 * FaaShare's spatio-temporal priority queue (section VI, algorithm 1): tasks by SLO, partitioned by memory into sub-queues,
 * each task at the share that it fills (the paper: the smallest that meets its SLO; as a share is fixed for the whole of a
 * run, that strands SMs); whoever comes last leaves while a prediction says that somebody misses it; then exchanges between
 * sub-queues that lower the mean completion. The first sub-queue of each GPU, beside what runs there, starts now, with
 * shares of the quota stage. Ours beyond the paper: fair turns between namespaces, a bound on waiting, tasks that run beside
 * others only where that gains something or they cannot wait, and a limit to what a decision costs.
 */
export function faashare({ predictorOf, admission, quotas, options: given }: FaashareNeeds): Policy {
  const options = { ...defaultFaashareOptions, ...given };
  const predictions = new PredictionCache(predictorOf);
  const turns = new NamespaceTurns();
  const arrivals = new ArrivalLoad();
  const progress = new Progress();
  /** By task that runs: what its namespace was charged for it, share-milliseconds. */
  const charged = new Map<string, number>();

  function decide(snapshot: Snapshot, event: SchedulingEvent): Decision {
    const { at } = snapshot;
    const { tasks, hopeless } = admit(snapshot, predictions);
    const goOn = admission === 'refuse' ? tasks.filter(({ id }) => !hopeless.has(id)) : tasks;
    const rooms = roomsOf(snapshot);
    const first = rooms.map((room) => firstQueueOn(room, predictions.of(room.gpu), at, progress));
    arrivals.see(goOn);
    const load = arrivals.part(at, first.length);
    const horizon = horizonAt(first, goOn, at, load);
    const order = orderOf(goOn, at, horizon);
    const plan = new FirstQueues(first, new Holdings(snapshot), { horizonAt: horizon, load }, options);
    if (event.kind === 'arrival') fillWith(event.task, order, plan);
    else fill(order, plan);
    const starts = first.flatMap((queue) => startsOf(queue, at, quotas)).reduce(oneStartEach, []);
    charge(starts, goOn);
    progress.note(first, at);
    const started = new Set(starts.map(({ task }) => task));
    return {
      starts,
      refused: admission === 'refuse' ? [...hopeless].map(([task, reason]) => ({ task, reason })) : [],
      bestEffort: admission === 'refuse' ? [] : [...hopeless.keys()],
      order: order.map(({ task }) => task.id).filter((id) => !started.has(id)),
      rejected: plan.rejected.filter(({ task }) => !started.has(task)),
    };
  }

  /** Everybody in turn: what is overdue first, then the others by deadline, fair between namespaces in each. */
  function orderOf(tasks: readonly Task[], at: number, horizon: number): Turn[] {
    const { bestEffortMs } = options;
    const turn = (task: Task): Turn & { at: number } => {
      const isLong = isCritical(task, at, horizon);
      return isOverdue({ arrivedMs: task.arrivedAt, sloMs: task.sloMs }, at, bestEffortMs)
        ? { task, isOverdue: true, isCritical: isLong, at: task.arrivedAt }
        : { task, isOverdue: false, isCritical: isLong, at: task.arrivedAt + sloOf(task, bestEffortMs) };
    };
    const sorted = tasks
      .map(turn)
      .sort(
        (a, b) => Number(b.isCritical) - Number(a.isCritical) || a.at - b.at || a.task.arrivedAt - b.task.arrivedAt,
      );
    turns.keepOnly(new Set(tasks.map(({ namespace }) => namespace)));
    return [sorted.filter((turn) => turn.isOverdue), sorted.filter((turn) => !turn.isOverdue)].flatMap((part) =>
      turns.order(byNamespace(part), ({ task }) => costOf(task, task.share ?? sufficientShare(task))),
    );
  }

  /** The whole algorithm. */
  function fill(order: readonly Turn[], plan: FirstQueues): void {
    const left: Task[] = [];
    const overdue = new Set<string>();
    for (const [index, { task, isOverdue, isCritical }] of order.entries()) {
      if (isOverdue || isCritical) overdue.add(task.id);
      if (plan.add(task, order.length - index - 1)) continue;
      left.push(task);
      if (isOverdue) plan.keepFor(task);
      else if (isCritical) plan.keepSoonest(task);
    }
    const later = laterQueues(left, plan.queues, options);
    exchangeAll(plan.queues, later, ({ task }) => overdue.has(task.id) || task.gpus > 1);
  }

  /** An arrival makes no room: those that wait would have started. Only the newcomer is tried. */
  function fillWith(id: string, order: readonly Turn[], plan: FirstQueues): void {
    for (const [index, turn] of order.entries()) {
      if (turn.task.id === id) {
        plan.add(turn.task, order.length - index - 1);
        return;
      }
      plan.skip();
      if (turn.isOverdue) plan.keepFor(turn.task);
      else if (turn.isCritical) plan.keepSoonest(turn.task);
    }
  }

  function exchangeAll(
    first: readonly SubQueue[],
    later: readonly SubQueue[],
    isPinned: (member: Member) => boolean,
  ): void {
    let left = options.maxExchanges;
    const { tolerance } = options;
    const all = [...first, ...later];
    for (const [at, queue] of all.entries()) {
      for (const other of all.slice(Math.max(at + 1, first.length))) {
        if (exchange(queue, other, all, { tolerance, isPinned }) === 'none') continue;
        left -= 1;
        if (left <= 0) return;
      }
    }
  }

  function charge(starts: readonly Start[], waiting: readonly Task[]): void {
    if (starts.length === 0) return;
    const tasks = new Map(waiting.map((task) => [task.id, task]));
    const names = [...new Set(waiting.map(({ namespace }) => namespace))];
    for (const { task: id, share } of starts) {
      const task = tasks.get(id)!;
      const cost = costOf(task, share);
      turns.started(task.namespace, cost, names);
      charged.set(id, cost);
    }
    for (const id of charged.keys()) {
      if (charged.size <= maxCharged) return;
      charged.delete(id);
    }
  }

  /** What was estimated of a run is made good. */
  function observe({ task, share, ranMs }: ObservedRun): void {
    const estimated = charged.get(task.id);
    charged.delete(task.id);
    if (estimated !== undefined && ranMs >= 0) turns.correct(task.namespace, share * ranMs * task.gpus - estimated);
  }

  return { name: 'faashare', decide, observe };
}

/** Best effort is due when an SLO of the paper's experiments (section IX-A) would have it be, so that short tasks go first. */
const bestEffortFactor = 4;

function sloOf({ sloMs, soloMs }: Task, bestEffortMs: number): number {
  return sloMs ?? Math.min(bestEffortMs, soloMs === undefined ? Infinity : bestEffortFactor * soloMs);
}

/** What a task takes of its namespace's turn, share-milliseconds. */
function costOf({ soloMs = unmeasuredMs, gpus }: Task, share: number): number {
  return Math.max(1, share * soloMs * gpus);
}

/** Each task once and none that runs; those that cannot meet their SLO, with the reason, are best effort among them. */
function admit(
  { at, gpus, waiting }: Snapshot,
  predictions: PredictionCache,
): { tasks: Task[]; hopeless: Map<string, string> } {
  const seen = new Set(gpus.flatMap(({ running }) => running.map(({ task }) => task.id)));
  const models = [...new Set(gpus.map((gpu) => predictions.of(gpu)))];
  const hopeless = new Map<string, string>();
  const tasks: Task[] = [];
  for (const given of waiting) {
    if (seen.has(given.id)) continue;
    seen.add(given.id);
    const task = measured(given);
    if (task.sloMs === undefined) {
      tasks.push(task);
      continue;
    }
    const leftMs = deadlineAt(task) - Math.max(at, task.arrivedAt);
    const { soloMs = 0, share = 1 } = task;
    const startMs = gpus.some((gpu) => isWarmOn(gpu, task)) ? 0 : (task.startMs ?? 0);
    const slowdown = Math.min(...models.map((model) => model.alone(task.features, share)));
    const needMs = startMs + (models.length === 0 ? 0 : soloMs * slowdown);
    if (needMs <= leftMs) {
      tasks.push(task);
      continue;
    }
    hopeless.set(task.id, `it needs ${Math.ceil(needMs)} ms, and its SLO leaves ${Math.floor(leftMs)}`);
    tasks.push(without(task, 'sloMs'));
  }
  return { tasks, hopeless };
}

/** A time that is no time has not been measured. */
function measured(task: Task): Task {
  const { soloMs } = task;
  return soloMs === undefined || (soloMs > 0 && Number.isFinite(soloMs)) ? task : without(task, 'soloMs');
}

function without(task: Task, field: 'sloMs' | 'soloMs'): Task {
  const copy = { ...task };
  delete copy[field];
  return copy;
}

function byNamespace(turns: readonly Turn[]): NamespaceQueue<Turn>[] {
  const found = new Map<string, Turn[]>();
  for (const turn of turns) {
    const { namespace } = turn.task;
    const known = found.get(namespace);
    if (known === undefined) found.set(namespace, [turn]);
    else known.push(turn);
  }
  return [...found].map(([namespace, waiting]) => ({ namespace, waiting }));
}

function startsOf(queue: SubQueue, at: number, quotas: Quotas | undefined): Start[] {
  if (queue.members.length === 0) return [];
  const { shares, source } = finalShares(queue, quotas);
  const { endsAt } = outlookOf(queue);
  return queue.members.map(({ task }, index) => ({
    task: task.id,
    gpu: queue.gpu.id,
    share: shares[index]!,
    ...(task.soloMs !== undefined && { predictedMs: endsAt[queue.running.length + index]! - at }),
    reason: `beside ${queue.running.length + queue.members.length - 1} others; share: ${source}`,
  }));
}

/** A task on several GPUs is one start, with the smallest of its shares. */
function oneStartEach(starts: Start[], next: Start): Start[] {
  const known = starts.findIndex(({ task }) => task === next.task);
  if (known < 0) starts.push(next);
  else {
    const one = starts[known]!;
    starts[known] = { ...one, alsoOn: [...(one.alsoOn ?? []), next.gpu], share: Math.min(one.share, next.share) };
  }
  return starts;
}
