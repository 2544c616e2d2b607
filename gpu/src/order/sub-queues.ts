import type { Rejection } from '@gpuwhisk/common/gpu';
import type { Task, TaskRejection } from '../policies/policy.js';
import { gangFor, obstacle, roomsToKeep } from '../policies/rooms.js';
import { add, copyOf, hasRoom, laterQueueOn, memberOf, outlookOf, raiseLate, remove } from './sub-queue.js';
import type { Member, SubQueue } from './sub-queue.js';

/** What a plan goes by. */
export interface PlanOptions {
  /**
   * Work that a best-effort task must add to a GPU for running beside others, as a part of what one GPU does for one
   * task: 0 has it run beside others for nothing, 1 never.
   */
  minGain: number;
  /** Shares that are given away of one GPU, at most, tasks that are alone aside. */
  maxLoad: number;
  /** Sub-queues that are planned ahead, at most. */
  maxLater: number;
}

/** Sub-queues that a task is tried in by prediction, at most. */
const maxTries = 3;

/**
 * Adds a member if the GPU does better with it: nobody misses a deadline for it, and best effort adds enough work. Those
 * that would be late at their smallest shares take more.
 */
export function addIfPasses(queue: SubQueue, member: Member, { minGain }: PlanOptions): boolean {
  const before = outlookOf(queue);
  const tried = copyOf(queue);
  add(tried, member);
  raiseLate(tried);
  const after = outlookOf(tried);
  if (after.late > before.late) return false;
  const isWorthIt = member.task.sloMs !== undefined || queue.clients === 0 || after.rate >= before.rate + minGain;
  if (isWorthIt) Object.assign(queue, tried);
  return isWorthIt;
}

/** The sub-queues that may start now, being filled; and what is kept and said about them. */
export class FirstQueues {
  readonly rejected: TaskRejection[] = [];
  private readonly kept = new Set<SubQueue>();
  /** Half of the GPUs: those who have waited for too long do not stop everybody else. */
  private readonly maxKept: number;

  constructor(
    readonly queues: readonly SubQueue[],
    private readonly options: PlanOptions,
  ) {
    this.maxKept = Math.ceil(queues.length / 2);
  }

  /** Puts a task into the emptiest sub-queue that has the memory for it: nothing is predicted. */
  addByMemory(task: Task): boolean {
    if (task.gpus > 1) return this.addToGang(task);
    const [queue] = this.fitting(task);
    if (queue === undefined) return false;
    add(queue, memberOf(task, queue));
    return true;
  }

  /** Puts a task into the emptiest sub-queue in which nobody misses a deadline for it. */
  addByPrediction(task: Task): boolean {
    return task.gpus === 1 ? this.addToOne(task, this.fitting(task)) : this.addToGang(task);
  }

  /** Keeps GPUs for a task that has waited for so long that nobody may overtake it there. */
  keepFor(task: Task): void {
    const open = this.queues.filter((queue) => !this.kept.has(queue));
    for (const queue of roomsToKeep(open, task) as SubQueue[]) if (this.kept.size < this.maxKept) this.kept.add(queue);
  }

  /**
   * Takes the last ones out of a sub-queue while a prediction says that somebody misses a deadline, or that the last one
   * adds too little. Each goes to another sub-queue that may start now and has it pass, or is returned.
   */
  relieve(queue: SubQueue): Task[] {
    const leaving: Task[] = [];
    for (;;) {
      const tail = queue.members.at(-1);
      if (tail === undefined) break;
      remove(queue, tail);
      // Who comes before it may be late without it.
      if (addIfPasses(queue, tail, this.options)) {
        if (outlookOf(queue).late === 0) break;
        remove(queue, queue.members.at(-1)!);
      }
      this.reject(tail.task, queue, foreseen(queue));
      this.takeOut(tail.task);
      leaving.push(tail.task);
    }
    const others = (task: Task): SubQueue[] => this.fitting(task).filter((one) => one !== queue);
    return leaving.reverse().filter((task) => task.gpus > 1 || !this.addToOne(task, others(task)));
  }

  private addToOne(task: Task, fit: readonly SubQueue[]): boolean {
    for (const queue of fit.slice(0, maxTries)) {
      if (addIfPasses(queue, memberOf(task, queue), this.options)) return true;
      this.reject(task, queue, foreseen(queue));
    }
    return false;
  }

  private addToGang(task: Task): boolean {
    const passing = this.fitting(task).filter((queue) => {
      const isPassing = addIfPasses(copyOf(queue), memberOf(task, queue), this.options);
      if (!isPassing) this.reject(task, queue, foreseen(queue));
      return isPassing;
    });
    const gang = gangFor(passing, task);
    for (const queue of gang ?? []) addIfPasses(queue, memberOf(task, queue), this.options);
    return gang !== undefined;
  }

  /** Takes a task that needs several GPUs off all of them. */
  private takeOut(task: Task): void {
    if (task.gpus === 1) return;
    for (const queue of this.queues) {
      const member = queue.members.find((one) => one.task === task);
      if (member !== undefined) remove(queue, member);
    }
  }

  /** The sub-queues that a task can be put into, the best one first. */
  private fitting(task: Task): SubQueue[] {
    const fit: { queue: SubQueue; load: number; isWarm: boolean }[] = [];
    for (const queue of this.queues) {
      const problem = this.kept.has(queue) ? keptForAnother : obstacle(queue, task);
      if (problem !== undefined) {
        this.reject(task, queue, problem);
        continue;
      }
      const { share } = memberOf(task, queue);
      const load = queue.load + share;
      if (queue.clients > 0 && load > this.options.maxLoad) {
        this.reject(task, queue, { reason: 'its SMs are given away', numbers: { load: queue.load, share } });
        continue;
      }
      fit.push({ queue, load, isWarm: load <= 1 && isWarmOn(queue, task) });
    }
    fit.sort((a, b) => Number(b.isWarm) - Number(a.isWarm) || a.load - b.load || b.queue.freeMiB - a.queue.freeMiB);
    return fit.map(({ queue }) => queue);
  }

  private reject({ id }: Task, { gpu }: SubQueue, why: Pick<Rejection, 'reason' | 'numbers'>): void {
    this.rejected.push({ task: id, what: gpu.id, ...why });
  }
}

const keptForAnother = { reason: 'kept for one that waits for longer', numbers: {} };

/** Why a task does not pass beside what is in a sub-queue. */
function foreseen(queue: SubQueue): Pick<Rejection, 'reason' | 'numbers'> {
  const { rate } = outlookOf(queue);
  return { reason: 'a deadline would be missed, or too little gained', numbers: { beside: queue.clients, rate } };
}

function isWarmOn({ gpu }: SubQueue, task: Task): boolean {
  return gpu.idle?.some((one) => one.function === task.function && one.namespace === task.namespace) ?? false;
}

/** Sub-queues for those that cannot start now, each on the GPU that is free first; what is beyond the limit is left out. */
export function laterQueues(tasks: readonly Task[], first: readonly SubQueue[], options: PlanOptions): SubQueue[] {
  const later: SubQueue[] = [];
  const lastOn = new Map(first.map((queue) => [queue.gpu.id, queue]));
  for (const task of tasks) {
    if (task.gpus > 1) continue;
    const fit = later.filter((queue) => hasRoom(queue, task) && queue.load < options.maxLoad).slice(0, maxTries);
    if (fit.some((queue) => addIfPasses(queue, memberOf(task, queue), options))) continue;
    if (later.length >= options.maxLater) break;
    const queue = earliest([...lastOn.values()], task);
    if (queue === undefined) continue;
    add(queue, memberOf(task, queue));
    later.push(queue);
    lastOn.set(queue.gpu.id, queue);
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
