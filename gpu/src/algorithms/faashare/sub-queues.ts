import type { Task } from '../../view/view.js';
import { keptForAnother, mostRejections } from '../../view/decision.js';
import type { TaskRejection } from '../../view/decision.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { gangFor, obstacle, placesToKeepFor } from './plan-places.js';
import type { PlaceFork } from '../../ledger/fork.js';
import type { Holdings } from './namespace-fairness.js';
import { joined } from './sub-queue-moves.js';
import type { Joined, Prospect } from './sub-queue-moves.js';
import { functionKeyOf } from '../../ledger/occupancy.js';
import {
  add,
  firstShareRefusal,
  hasRoom,
  isByRule,
  isWarmOn,
  laterQueueOn,
  memberOf,
  membersOf,
  outlookOf,
  shareWithin,
  unmeasuredMs,
} from './sub-queue.js';
import type { SubQueue } from './sub-queue.js';

/** What a plan goes by. */
export interface PlanOptions {
  /**
   * Work that a task must add to a GPU for running beside others, as a part of what one GPU does for one task: 0 has it
   * run beside others for nothing, 1 never. A strict one that cannot wait does not have to.
   */
  minGain: number;
  /** Shares that are given away of one GPU, at most, tasks that are alone aside. */
  maxLoad: number;
  /** The same for a namespace that holds more than its part while others have work: the rest is there when they come. */
  maxLoadOver: number;
  /** Sub-queues that are planned ahead for exchanges, at most. */
  maxLater: number;
  /** Sub-queues that a task is tried in by prediction, at most, those with the least load. */
  maxTries: number;
  /** 1: a GPU that is kept for a task is lent to work that ends before that could start (EASY backfilling); 0: it is not. */
  backfills: number;
}

/** Part of the share that it fills which a task gets at least beside others. */
const leastSqueezed = 0.6;
/** Failed tries to add a task to a sub-queue, at most, in one decision. */
const maxFailures = 4;
/** Arrivals are reckoned to leave as much of the GPUs' time free as 1 less this. */
const maxLoadSeen = 0.95;

/** The sub-queues that may start now, being filled; and what is kept and said about them. */
export class FirstQueues {
  readonly rejected: TaskRejection[] = [];
  /** Rejections of each task. */
  private readonly told = new Map<string, number>();
  /** Sub-queues that are kept for a task, each with the time until which others may use it, ms. */
  private readonly kept = new Map<SubQueue, number>();
  /** Predictions that were against a task. */
  private readonly failures = new Map<SubQueue, number>();
  /** Tasks whose turn has come and that wait. */
  private waiting = 0;
  /** When the GPUs will be free, the first one first; undefined: to be looked up. */
  private freeAt: number[] | undefined;
  /** Half of the GPUs: overdue tasks do not stop all others; see `keepFor`. */
  private readonly maxKept: number;
  /** When an instance of each function that runs is free, see `waitOf`; undefined: to be looked up. */
  private freeInstances: Map<string, FreeInstances> | undefined;

  constructor(
    readonly queues: readonly SubQueue[],
    private readonly holdings: Holdings,
    private readonly outlook: Outlooks,
    private readonly options: PlanOptions,
  ) {
    this.maxKept = Math.ceil(queues.length / 2);
  }

  /**
   * Puts a task into the emptiest sub-queue with the memory for it in which no task is predicted to miss a deadline: the
   * paper's migration of the last task, before it is in. `behind` tasks come after it.
   */
  add(task: Task, behind: number): boolean {
    const { horizonAt, arrivalLoad } = this.outlook;
    const expected = (behind + arrivalLoad) / (this.queues.length * (1 - Math.min(arrivalLoad, maxLoadSeen)));
    const prospect = { horizonAt, turnAt: this.turnAt(), behind: expected };
    const isIn = task.gpus === 1 ? this.addToOne(task, prospect, this.fitting(task)) : this.addToGang(task, prospect);
    if (isIn) this.started(task);
    else this.skip();
    return isIn;
  }

  private started(task: Task): void {
    this.freeAt = undefined;
    this.freeInstances = undefined;
    const key = functionKeyOf(task);
    const waiting = this.outlook.waiting.get(key);
    if (waiting !== undefined) this.outlook.waiting.set(key, waiting - 1);
  }

  /** The next task in turn waits. */
  skip(): void {
    this.waiting += 1;
  }

  /**
   * Keeps GPUs for a task that has waited for so long that no task may overtake it there: for the first one in turn all that
   * it needs, so that it starts once what runs on them has ended; for others while half of the GPUs suffice.
   */
  keepFor(task: Task): void {
    const gpus = placesToKeepFor(
      this.queues.filter((queue) => !this.kept.has(queue)),
      task,
    );
    if (this.kept.size > 0 && this.kept.size + gpus.length > this.maxKept) return;
    this.keep(gpus);
  }

  /** Keeps the GPU that is predicted to be free first for a task that all others would wait for in the end. */
  keepSoonest(task: Task): void {
    if (this.kept.size >= this.maxKept) return;
    let soonest: SubQueue | undefined;
    for (const queue of this.queues) {
      if (this.kept.has(queue) || placesToKeepFor([queue], task).length === 0) continue;
      if (soonest === undefined || outlookOf(queue).lastAt < outlookOf(soonest).lastAt) soonest = queue;
    }
    if (soonest !== undefined) this.keep([soonest]);
  }

  /**
   * Keeps the GPU that is predicted to be free first for a task with an SLO that waits, from tasks of which nothing is
   * measured: these do not let it in, and by twos one of them is always there.
   */
  keepFromUnknown(task: Task): void {
    const open = this.queues.filter(({ isKeptFromUnknown }) => !isKeptFromUnknown);
    if (this.queues.length - open.length >= this.maxKept) return;
    const could = open.filter((queue) => placesToKeepFor([queue], task).length > 0);
    const soonest = could.sort((one, other) => outlookOf(one).lastAt - outlookOf(other).lastAt)[0];
    if (soonest !== undefined) soonest.isKeptFromUnknown = true;
  }

  /** Keeps GPUs for one task, which cannot start before a run has ended on each of them. */
  private keep(queues: readonly SubQueue[]): void {
    const firstEnds = queues.map((queue) => {
      const { endsAt } = outlookOf(queue);
      return endsAt.length === 0 ? queue.startsAt : Math.min(...endsAt);
    });
    for (const queue of queues) this.kept.set(queue, Math.max(...firstEnds));
  }

  /** How long the last waiting task of a function would wait for the instances that run, ms; Infinity: there are none. */
  private waitOf(task: Task): number {
    this.freeInstances ??= freeInstances(this.queues);
    const key = functionKeyOf(task);
    const free = this.freeInstances.get(key);
    if (free === undefined) return Infinity;
    const ahead = (this.outlook.waiting.get(key) ?? 1) - 1;
    return free.firstMs + (ahead * lengthMs(task)) / free.instances;
  }

  /** When a GPU will be free for the task whose turn it is: each that waits takes one. */
  private turnAt(): number {
    if (this.waiting >= this.queues.length) return Infinity;
    this.freeAt ??= this.queues.map((queue) => outlookOf(queue).lastAt).sort((one, other) => one - other);
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- there is a time for each queue, and fewer wait
    return this.freeAt[this.waiting]!;
  }

  /** Puts a task where its end, and what its neighbours end later for it, are predicted to sum to the least. */
  private addToOne(task: Task, prospect: Prospect, fit: readonly FitQueue[]): boolean {
    const { maxTries } = this.options;
    const passing: (FitQueue & { joined: Joined })[] = [];
    for (const one of fit.slice(0, maxTries)) {
      const found = this.tryIn(one, task, { ...prospect, endBy: this.kept.get(one.queue) });
      if (!('reason' in found)) {
        passing.push({ ...one, joined: found });
        // Beside no other task it costs least.
        if (one.queue.fork.busy === 0) break;
        continue;
      }
      this.reject(task, one.queue, found);
      this.failures.set(one.queue, (this.failures.get(one.queue) ?? 0) + 1);
    }
    const [first, ...others] = passing;
    if (first === undefined) {
      for (const one of fit.slice(maxTries, mostRejections)) {
        const numbers = { load: loadWith(one), tried: maxTries };
        this.reject(task, one.queue, { reason: 'tasks before it used up the tries', numbers });
      }
      return false;
    }
    const best = others.reduce((one, other) => (other.joined.costMs < one.joined.costMs ? other : one), first);
    this.commit(best.joined, task);
    for (const {
      queue,
      joined: { costMs },
    } of passing) {
      if (queue === best.queue) continue;
      const reason = 'it and its neighbours would end later than on the chosen one';
      this.reject(task, queue, { reason, numbers: { costMs, chosenCostMs: best.joined.costMs } });
    }
    const tried = new Set(fit.slice(0, maxTries));
    for (const other of fit.slice(0, mostRejections)) {
      if (!tried.has(other) || (first.queue.fork.busy === 0 && other.queue !== first.queue)) {
        this.reject(task, other.queue, outranked(other, best));
      }
    }
    return true;
  }

  private tryIn({ queue, share }: FitQueue, task: Task, prospect: Prospect): Joined | Refusal {
    return joined(queue, { task, share }, prospect, this.options.minGain);
  }

  private commit({ queue, tried }: Joined, task: Task): void {
    Object.assign(queue, tried);
    const member = queue.members.at(-1);
    if (member !== undefined) this.holdings.add(task, member.share);
  }

  private addToGang(task: Task, prospect: Prospect): boolean {
    const passing = new Map<SubQueue, Joined>();
    for (const one of this.fitting(task)) {
      const found = this.tryIn(one, task, prospect);
      if ('reason' in found) this.reject(task, one.queue, found);
      else passing.set(one.queue, found);
    }
    const gang = gangFor([...passing.keys()], task);
    for (const queue of gang ?? []) {
      const found = passing.get(queue);
      if (found !== undefined) this.commit(found, task);
    }
    if (gang === undefined) for (const queue of passing.keys()) this.reject(task, queue, tooFewAlike(task));
    return gang !== undefined;
  }

  /** The sub-queues that a task can be put into, the best one first. */
  private fitting(task: Task): FitQueue[] {
    const fit: FitQueue[] = [];
    const isLastEmpty = this.queues.filter(({ fork }) => fork.busy === 0).length === 1;
    for (const queue of this.queues) {
      const problem = this.isClosedTo(queue, task)
        ? keptForAnother
        : (obstacle(queue.fork, task) ?? this.refusedByRule(queue, task) ?? this.closed(queue));
      if (problem !== undefined) {
        this.reject(task, queue, problem);
        continue;
      }
      const { maxLoad, maxLoadOver } = this.options;
      const share = this.shareIn(queue, task);
      const { fork } = queue;
      const load = fork.load + share;
      // Those that share by the rule for unknown functions divide the GPU; a namespace that has nothing yet takes no other's part.
      const isDivided = fork.busy > 0 && load > maxLoadOver && isByRule(queue, task);
      const isFirst = isDivided && this.holdings.numbersOf(task).held === 0;
      const isOver = load > maxLoadOver && !isFirst && this.holdings.isOver(task, share);
      if (fork.busy === 0 && isLastEmpty && this.holdings.isFarOver(task, share)) {
        this.reject(task, queue, { reason: keptForOthers, numbers: { ...this.holdings.numbersOf(task), share } });
        continue;
      }
      const isFull = load > maxLoad && !isDivided;
      if (fork.busy > 0 && (isFull || isOver)) {
        const most = isOver ? maxLoadOver : maxLoad;
        const reason = isOver && !isFull ? 'its namespace holds its part of all GPUs' : 'its SMs are given away';
        this.reject(task, queue, { reason, numbers: { load: fork.load, share, most } });
        continue;
      }
      fit.push({ queue, share, fork, isWarm: load <= 1 && isWarmOn(queue.place, task) });
    }
    fit.sort(
      (a, b) =>
        Number(b.isWarm) - Number(a.isWarm) || loadWith(a) - loadWith(b) || b.fork.availableMiB - a.fork.availableMiB,
    );
    return fit;
  }

  /**
   * The share that a task fills. Where no more may be given away of a GPU than there is (`maxLoad` of at most 1), beside
   * others what is left, if that is most of it.
   */
  private shareIn(queue: SubQueue, task: Task): number {
    const { share } = memberOf(task, queue);
    const { maxLoad } = this.options;
    const { fork } = queue;
    const isSqueezed = maxLoad <= 1 && fork.busy > 0 && task.share === undefined && fork.load + share > maxLoad;
    const left = isSqueezed ? (shareWithin(maxLoad - fork.load) ?? 0) : share;
    return left >= share * leastSqueezed ? left : share;
  }

  /** Whether a sub-queue is kept for another task that could start before this one would end (EASY backfilling). */
  private isClosedTo(queue: SubQueue, task: Task): boolean {
    const until = this.kept.get(queue);
    if (until === undefined) return false;
    if (this.options.backfills === 0) return true;
    return task.gpus > 1 || !(queue.startsAt + memberOf(task, queue).startMs + lengthMs(task) <= until);
  }

  private refusedByRule(queue: SubQueue, task: Task): Refusal | undefined {
    return queue.firstShare && firstShareRefusal(queue, task, () => this.waitOf(task));
  }

  /** One that several did not pass in is asked no more. */
  private closed(queue: SubQueue): Refusal | undefined {
    const failed = this.failures.get(queue) ?? 0;
    if (failed < maxFailures) return undefined;
    return { reason: 'tasks before it did not fit there', numbers: { tried: failed, beside: queue.fork.busy } };
  }

  private reject({ id }: Task, { place }: SubQueue, why: Refusal): void {
    const told = this.told.get(id) ?? 0;
    if (told === mostRejections) return;
    this.told.set(id, told + 1);
    this.rejected.push({ task: id, what: place.id, ...why });
  }
}

/** What first sub-queues know of the work ahead. */
interface Outlooks {
  /** When all that runs and waits will have been done, ms. */
  horizonAt: number;
  /** Part of the GPUs' time that arrivals take. */
  arrivalLoad: number;
  /** Tasks that still wait by function, as `functionKeyOf` names it; counted where the rule for unknown functions holds. */
  waiting: Map<string, number>;
}

/** Instances of a function that run. */
interface FreeInstances {
  /** Until the first of them is free, ms. */
  firstMs: number;
  instances: number;
}

function freeInstances(queues: readonly SubQueue[]): Map<string, FreeInstances> {
  const found = new Map<string, FreeInstances>();
  for (const queue of queues) {
    const { endsAt } = outlookOf(queue);
    for (const [at, { task }] of membersOf(queue).entries()) {
      const key = functionKeyOf(task);
      const known = found.get(key) ?? { firstMs: Infinity, instances: 0 };
      const endMs = (endsAt[at] ?? queue.startsAt) - queue.startsAt;
      found.set(key, { firstMs: Math.min(known.firstMs, endMs), instances: known.instances + 1 });
    }
  }
  return found;
}

function lengthMs({ soloMs = unmeasuredMs }: Task): number {
  return soloMs;
}

const keptForOthers = 'the last free GPU is kept for namespaces that hold less';

/** A sub-queue that has room for a task, as it was when that was looked at. */
interface FitQueue {
  queue: SubQueue;
  /** That the task would get. */
  share: number;
  /** Without the task; the sub-queue gets another one with its next member. */
  fork: PlaceFork;
  isWarm: boolean;
}

/** Shares that are given away with the task, as a fraction of the SMs. */
function loadWith({ fork, share }: FitQueue): number {
  return fork.load + share;
}

/** The rule by which `chosen` goes before a sub-queue that would do, with the numbers of both. */
function outranked(other: FitQueue, chosen: FitQueue): Refusal {
  const { availableMiB } = other.fork;
  const [load, chosenLoad] = [loadWith(other), loadWith(chosen)];
  if (other.isWarm !== chosen.isWarm) {
    const reason = 'no instance of the function idles there, as on the chosen one';
    return { reason, numbers: { load, chosenLoad } };
  }
  if (load !== chosenLoad) {
    const reason = 'more of its SMs would be given away than of the chosen one';
    return { reason, numbers: { load, chosenLoad } };
  }
  if (availableMiB !== chosen.fork.availableMiB) {
    const reason = 'less of its memory is left than of the chosen one';
    return { reason, numbers: { availableMiB, chosenMiB: chosen.fork.availableMiB } };
  }
  return { reason: 'as good as the chosen one, which is listed first', numbers: { load, availableMiB } };
}

function tooFewAlike({ gpus: needed }: Task): Refusal {
  return { reason: 'too few alike on its node', numbers: { needed } };
}

/**
 * Sub-queues for those that cannot start now, as memory and shares allow, each on the GPU that is free first; what is
 * beyond the limit is left out.
 */
export function laterQueues(tasks: readonly Task[], first: readonly SubQueue[], options: PlanOptions): SubQueue[] {
  const later: SubQueue[] = [];
  const lastOn = new Map(first.map((queue) => [queue.place.id, queue]));
  for (const task of tasks) {
    if (task.gpus > 1) continue;
    const isFit = (queue: SubQueue): boolean =>
      queue.fork.load + memberOf(task, queue).share <= 1 && hasRoom(queue, task);
    let queue = later.find(isFit);
    if (queue === undefined) {
      if (later.length >= options.maxLater) break;
      queue = earliest([...lastOn.values()], task);
      if (queue === undefined) continue;
      later.push(queue);
      lastOn.set(queue.place.id, queue);
    }
    add(queue, memberOf(task, queue));
  }
  return later;
}

function earliest(last: readonly SubQueue[], task: Task): SubQueue | undefined {
  let found: SubQueue | undefined;
  for (const queue of last) {
    const { lastAt } = outlookOf(queue);
    if (found !== undefined && found.startsAt <= lastAt) continue;
    const next = laterQueueOn(queue, lastAt);
    if (hasRoom(next, task)) found = next;
  }
  return found;
}
