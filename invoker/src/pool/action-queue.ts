// The queue of an action: its jobs and containers, and whether it needs another container.
import { batchWaitMs, longestBatchWaitMs } from '@gpuwhisk/gpu/stages/order/batch-wait';
import type { ContainerSpec, ProvisioningError } from '../containers/container-factory.js';
import type { Disposition, PoolMember } from './pool-member.js';

/** An activation that wants a container. `Self` is the type of the jobs that may run together with it. */
export interface PoolJob<Self> {
  /** Key of the job's queue, equal for jobs that may share warm containers: invocation namespace, action and revision. */
  readonly key: string;
  /** The invocation namespace. A container that ran code for one namespace never serves another. */
  readonly namespace: string;
  /**
   * The code's owner, and whether the invocation namespace may read the code. A container that ran one owner's code never
   * gets another's: the earlier code could read the later one.
   */
  readonly codeOf: string;
  readonly spec: ContainerSpec;
  /** Largest number of jobs with its key that run as one; 1 for no batching. */
  readonly batch: number;
  /** The batch that a controller sent the job in: its name and its jobs; absent: none. */
  readonly together?: { of: string; requests: number } | undefined;
  /** It runs in no batch; absent: it does. */
  readonly runsAlone?: boolean;
  /** Idle containers with a GPU that the namespace may keep on this invoker; absent: any number. */
  readonly keepsWarm?: number | undefined;
  /** Time until the job has to start to meet its deadline, if a run takes `runMs`; Infinity without a deadline; ms. */
  slackMs(runMs: number): number;
  /**
   * Runs on the container, together with `others` of its key, and resolves once the slot is free; never rejects. After a
   * load of the code, the job must set `initialized` and call `onInitialized`: other jobs may use the container then.
   */
  run(member: PoolMember, onInitialized: () => void, others: readonly Self[]): Promise<Disposition>;
  /** Whether another container of the action should be readied before a run needs it. */
  readonly readiesAhead: boolean;
  /**
   * Loads the code into a container ahead of any run; resolves with the reason of a failure, or undefined. Never rejects.
   */
  ready(member: PoolMember): Promise<string | undefined>;
  /** Reports that the instance is launched, or the `problem`; only for jobs of ContainerPool.launch. */
  launched?(problem: string | undefined): void;
  /** Ends the job, which can get no container. */
  fail(error: ProvisioningError): void;
}

/** A job in a queue, with its time of arrival in monotonic ms. */
interface WaitingJob<Job> {
  job: Job;
  sinceMs: number;
}

const smoothing = 0.2;

/** The containers of one action (in one namespace and revision), and the jobs that wait for them. */
export class ActionQueue<Job extends PoolJob<Job>> {
  readonly waiting = new Fifo<WaitingJob<Job>>();
  readonly members = new Set<PoolMember>();
  /**
   * Members that can take a run now. The last one used is on top: its caches are warm, and others can reach their idle time.
   */
  readonly free: PoolMember[] = [];
  /** Number of containers that are being made for this action. */
  starting = 0;
  /** Smoothed time that a run keeps its container busy, ms; undefined before the first. */
  runMs: number | undefined;
  /** Smoothed duration of making and initialising a container, ms. */
  startMs: number;
  /** Monotonic ms of the last time a run ended. */
  lastEndMs = 0;
  private ended = 0;
  private busyMs = 0;
  /** Smoothed time between the arrivals of jobs, ms; undefined before the second one. */
  betweenMs: number | undefined;
  private lastArrivalMs: number | undefined;
  readonly backlog = new BacklogProbe();
  /** `keepsWarm` of the last job. */
  keepsWarm: number | undefined;
  /** Number of containers that are being readied ahead of need. */
  readying = 0;
  /** Whether a timer is set for jobs that wait for others of their batch. */
  batchTimerSet = false;
  /** Whether a timer ends the wait for a container with learned modules. */
  hopeSet = false;
  /** Whether a timer is set for a check of the head of the queue. */
  checkSet = false;

  constructor(
    readonly key: string,
    readonly namespace: string,
    readonly codeOf: string,
    /** The spec of its last job. Those of others differ in learned imports at most. */
    public spec: ContainerSpec,
    /** Largest number of jobs that run as one. */
    readonly batch: number,
    expectedStartMs: number,
  ) {
    this.startMs = expectedStartMs;
  }

  /** Number of containers that are ready and idle. */
  idleCount(): number {
    return this.free.filter((member) => member.initialized && member.active === 0).length;
  }

  get slots(): number {
    return this.members.size * this.spec.concurrency;
  }

  recordArrival(nowMs: number): void {
    const elapsedMs = nowMs - (this.lastArrivalMs ?? nowMs);
    if (this.lastArrivalMs !== undefined) {
      this.betweenMs =
        this.betweenMs === undefined ? elapsedMs : this.betweenMs + smoothing * (elapsedMs - this.betweenMs);
    }
    this.lastArrivalMs = nowMs;
  }

  /** Time that a free slot is still kept for further jobs of the batch, ms. */
  batchWaitMs(nowMs: number): number {
    const head = this.waiting.peek();
    if (this.batch === 1 || head === undefined || head.job.runsAlone === true) return 0;
    const { together } = head.job;
    if (together !== undefined) {
      // The jobs of a batch were sent one after the other; one of them may have been given back.
      const isThere = this.waiting.at(together.requests - 1)?.job.together?.of === together.of;
      return isThere ? 0 : Math.max(0, longestBatchWaitMs - (nowMs - head.sinceMs));
    }
    return batchWaitMs({
      waiting: this.waiting.length,
      batch: this.batch,
      waitedMs: nowMs - head.sinceMs,
      betweenMs: this.betweenMs,
      slackMs: head.job.slackMs(this.runMs ?? 0),
    });
  }

  /** Takes the jobs from the head of the queue that can run as one with `first`. */
  takeBatch(first: Job): Job[] {
    const jobs: Job[] = [];
    if (first.runsAlone === true) return jobs;
    for (
      let next = this.waiting.peek();
      next !== undefined && next.job.runsAlone !== true && jobs.length < this.batch - 1;
      next = this.waiting.peek()
    ) {
      this.waiting.shift();
      jobs.push(next.job);
    }
    return jobs;
  }

  recordRun(member: PoolMember, nowMs: number): void {
    const elapsedMs = member.container.busyMs - member.countedBusyMs;
    member.countedBusyMs += elapsedMs;
    this.busyMs += elapsedMs;
    this.lastEndMs = nowMs;
    this.ended++;
    this.runMs = this.runMs === undefined ? elapsedMs : this.runMs + smoothing * (elapsedMs - this.runMs);
  }

  progress(): Progress {
    const { ended, busyMs, slots } = this;
    return { ended, busyMs, containers: this.members.size, slots };
  }

  recordStart(elapsedMs: number): void {
    this.startMs += smoothing * (elapsedMs - this.startMs);
  }

  /** Upper bound of the last job's expected wait with the present containers, ms. */
  expectedWaitMs(): number {
    if (this.runMs === undefined || this.slots === 0) return Infinity;
    return (this.runMs * Math.ceil(this.waiting.length / this.batch)) / this.slots;
  }

  makeFree(member: PoolMember): void {
    if (!this.free.includes(member)) this.free.push(member);
  }

  /** Takes a slot of the most recently used member with a free one; undefined if all are busy. */
  takeSlot(): PoolMember | undefined {
    const member = this.free.at(-1);
    if (member === undefined) return undefined;
    member.active++;
    if (member.active >= this.spec.concurrency || !member.initialized) this.free.pop();
    return member;
  }

  remove(member: PoolMember): void {
    this.members.delete(member);
    const at = this.free.indexOf(member);
    if (at >= 0) this.free.splice(at, 1);
  }
}

/** Ratio of expected wait to start time from which on a start pays; a start also takes processor time from runs. */
const worthStarts = 2;
/** Run time below which BacklogProbe finds the best number of containers, ms. */
export const longRunMs = 20;

/**
 * Whether waiting jobs need more containers, because the present ones are too slow, stuck, or saturated. `startMs`: expected
 * time of a start.
 */
export function adviseGrowth<Job extends PoolJob<Job>>(
  queue: ActionQueue<Job>,
  nowMs: number,
  startMs = queue.startMs,
): Advice {
  const waitedMs = nowMs - (queue.waiting.peek()?.sinceMs ?? nowMs);
  if (waitedMs > startMs && nowMs - queue.lastEndMs > startMs) return 'add';
  if (queue.runMs === undefined) return 'add';
  if (queue.runMs > longRunMs && queue.expectedWaitMs() > startMs * worthStarts) return 'add';
  if (queue.starting > 0) return 'keep';
  return queue.backlog.advise(nowMs, queue.progress());
}

/** A first-in, first-out queue; push and shift are O(1) amortised. */
class Fifo<T> {
  private items: (T | undefined)[] = [];
  private head = 0;

  get length(): number {
    return this.items.length - this.head;
  }

  push(item: T): void {
    this.items.push(item);
  }

  peek(): T | undefined {
    return this.items[this.head];
  }

  /** The item with so many before it. */
  at(index: number): T | undefined {
    return this.items[this.head + index];
  }

  shift(): T | undefined {
    const item = this.items[this.head];
    if (item === undefined) return undefined;
    this.items[this.head++] = undefined;
    if (this.head > 1024 && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }
}

/** Time of observation before and after a container is added, ms. */
const windowMs = 250;
/** Factor of throughput that a container must gain to be kept and followed by another trial. */
const worthwhileGain = 1.05;
/** Time until a number of containers that was found best is tested again, ms. */
const settledMs = 10_000;
/** Fraction of busy time below which containers count as waiting for the platform. */
const worthwhileUse = 0.5;
/** Least number of containers that wait for the platform: with fewer, it handles run by run at twice the cost. */
const smallestBatch = 8;
/** Largest number of containers that wait for the platform. */
const largestBatch = 16;

/** Advice on the number of containers. */
type Advice = 'keep' | 'add' | 'drop';

/** Progress of an action's containers so far. */
interface Progress {
  /** Number of ended runs. */
  ended: number;
  /** Total time of these runs in their containers, ms. */
  busyMs: number;
  containers: number;
  /** Runs that all containers together can take at once. */
  slots: number;
}

/**
 * Finds by trial the best number of containers for an action whose queue stays filled although each job waits only shortly.
 * One container is added at a time while the throughput rises; the last one, without a gain, is removed again. Containers
 * that mostly wait for the platform are at least `smallestBatch`.
 */
export class BacklogProbe {
  private window: { sinceMs: number; ended: number; busyMs: number } | undefined;
  private bestPerMs = 0;
  private settled = false;

  /** Discards the measurements, when the queue is empty. */
  reset(): void {
    this.window = undefined;
    this.bestPerMs = 0;
    this.settled = false;
  }

  /** Advice while jobs wait. */
  advise(nowMs: number, { ended, busyMs, containers, slots }: Progress): Advice {
    const { window } = this;
    const elapsedMs = window === undefined ? 0 : nowMs - window.sinceMs;
    if (window !== undefined && elapsedMs < (this.settled ? settledMs : windowMs)) return 'keep';
    this.window = { sinceMs: nowMs, ended, busyMs };
    if (window === undefined || this.settled) {
      this.settled = false;
      this.bestPerMs = 0;
      return 'keep';
    }
    const perMs = (ended - window.ended) / elapsedMs;
    const waitsForPlatform = (busyMs - window.busyMs) / (elapsedMs * slots) < worthwhileUse;
    if (waitsForPlatform && containers < smallestBatch) {
      this.bestPerMs = perMs;
      return 'add';
    }
    const isTrial = this.bestPerMs > 0;
    if (perMs < this.bestPerMs * worthwhileGain) {
      this.settled = true;
      return isTrial && !(waitsForPlatform && containers <= smallestBatch) ? 'drop' : 'keep';
    }
    this.bestPerMs = perMs;
    this.settled = waitsForPlatform && containers >= largestBatch;
    return this.settled ? 'keep' : 'add';
  }
}
