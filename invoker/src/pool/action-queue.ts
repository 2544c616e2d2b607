// The queue of an action: its jobs and containers, and whether it needs another container.
import { batchWaitMs } from '@gpuwhisk/gpu/order/batch-wait';
import type { ContainerSpec, ProvisioningError } from '../containers/container-factory.js';
import type { Disposition, PoolMember } from './pool-member.js';

/** An activation that wants a container. `Self` is the type of the jobs that may run together with it. */
export interface PoolJob<Self> {
  /** Equal for jobs that may share warm containers: invocation namespace, action and revision. */
  readonly key: string;
  /** The invocation namespace: containers that had code of one are never another's. */
  readonly namespace: string;
  /**
   * Whose code it is, and whether the invocation namespace may read it. A container that ran code of one is never given to
   * code of another: the code that came first could read the one that follows.
   */
  readonly codeOf: string;
  readonly spec: ContainerSpec;
  /** Jobs of its key that may run together as one, at most; 1: it runs alone. */
  readonly batch: number;
  /** Containers with a GPU that its namespace may have idle here; absent: any number. */
  readonly keepsWarm?: number | undefined;
  /** Until it has to start so as to meet its deadline, if a run takes `runMs`; Infinity without a deadline; ms. */
  slackMs(runMs: number): number;
  /**
   * Runs on the container, together with `others` of its key, and resolves once the slot is free; never rejects. It must
   * set `initialized` and call `onInitialized` when it has loaded the code and others may use the container beside it.
   */
  run(member: PoolMember, onInitialized: () => void, others: readonly Self[]): Promise<Disposition>;
  /** Whether another container of the action should be readied before a run needs it. */
  readonly readiesAhead: boolean;
  /** Loads the code into a container ahead of any run; resolves with why that did not work, if so. Never rejects. */
  ready(member: PoolMember): Promise<string | undefined>;
  /** Its instance is launched, or not, for `problem`; only of jobs that ContainerPool.launch takes. */
  launched?(problem: string | undefined): void;
  /** No container can be had. */
  fail(error: ProvisioningError): void;
}

/** A job in a queue, with the monotonic ms at which it came. */
interface WaitingJob<Job> {
  job: Job;
  sinceMs: number;
}

const smoothing = 0.2;

/** The containers of one action (in one namespace and revision), and the jobs that wait for them. */
export class ActionQueue<Job extends PoolJob<Job>> {
  readonly waiting = new Fifo<WaitingJob<Job>>();
  readonly members = new Set<PoolMember>();
  /** Members that can take a run now; the last one used is on top, so that its caches are warm and others can idle out. */
  readonly free: PoolMember[] = [];
  /** Containers that are being made for this action. */
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
  /** Of the last job. */
  keepsWarm: number | undefined;
  /** Containers that are being readied ahead of need. */
  readying = 0;
  /** Those that wait for others to start with are looked at again soon. */
  batchTimerSet = false;
  /** A check of the head of the queue is set. */
  checkSet = false;

  constructor(
    readonly key: string,
    readonly namespace: string,
    readonly codeOf: string,
    readonly spec: ContainerSpec,
    /** Jobs that may run as one, at most. */
    readonly batch: number,
    expectedStartMs: number,
  ) {
    this.startMs = expectedStartMs;
  }

  /** Containers that are ready and have nothing to do. */
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

  /** How long a slot that is free is still to be kept for further jobs to start with those that wait, ms. */
  batchWaitMs(nowMs: number): number {
    const head = this.waiting.peek();
    if (this.batch === 1 || head === undefined) return 0;
    return batchWaitMs({
      waiting: this.waiting.length,
      batch: this.batch,
      waitedMs: nowMs - head.sinceMs,
      betweenMs: this.betweenMs,
      slackMs: head.job.slackMs(this.runMs ?? 0),
    });
  }

  /** Takes jobs out of the queue that can run together with the one before them. */
  takeBatch(): Job[] {
    const jobs: Job[] = [];
    for (
      let next = this.waiting.peek();
      next !== undefined && jobs.length < this.batch - 1;
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

  /** The longest wait that the last job in the queue should expect from the containers there are, ms. */
  expectedWaitMs(): number {
    if (this.runMs === undefined || this.slots === 0) return Infinity;
    return (this.runMs * Math.ceil(this.waiting.length / this.batch)) / this.slots;
  }

  makeFree(member: PoolMember): void {
    if (!this.free.includes(member)) this.free.push(member);
  }

  /** The most recently used member with a free slot, its slot taken; undefined if all are busy. */
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

/** A start pays if the wait is expected to be so many times as long: it takes processor time from the runs, too. */
const worthStarts = 2;
/** For shorter runs it is tried out how many containers serve them best, ms. */
export const longRunMs = 20;

/** Whether the jobs that wait need more than the containers there are: those are too slow, stuck, or saturated. */
export function adviseGrowth<Job extends PoolJob<Job>>(queue: ActionQueue<Job>, nowMs: number): Advice {
  const waitedMs = nowMs - (queue.waiting.peek()?.sinceMs ?? nowMs);
  if (waitedMs > queue.startMs && nowMs - queue.lastEndMs > queue.startMs) return 'add';
  if (queue.runMs === undefined) return 'add';
  if (queue.runMs > longRunMs && queue.expectedWaitMs() > queue.startMs * worthStarts) return 'add';
  if (queue.starting > 0) return 'keep';
  return queue.backlog.advise(nowMs, queue.progress());
}

/** A first-in first-out queue; push and shift are O(1) amortised. */
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

/** How long a backlog is watched before and after a container is added, ms. */
const windowMs = 250;
/** What a container must add to the throughput to be kept, and for another one to be tried. */
const worthwhileGain = 1.05;
/** How long the number of containers that was found good stays, ms. */
const settledMs = 10_000;
/** Containers that are busy for less of the time wait for the platform. */
const worthwhileUse = 0.5;
/** Fewer containers that wait for the platform have it work run by run, which costs it twice the time. */
const smallestBatch = 8;
/** So many are enough. */
const largestBatch = 16;

/** What to do about the number of containers. */
type Advice = 'keep' | 'add' | 'drop';

/** What an action's containers have done so far. */
interface Progress {
  /** Runs that ended. */
  ended: number;
  /** Time that these took in their containers, all together, ms. */
  busyMs: number;
  containers: number;
  /** Runs that all of them can do at once. */
  slots: number;
}

/**
 * Finds by trial how many containers serve an action best whose queue does not empty although each job waits only
 * shortly: one is added at a time, as long as the throughput rises; the one that did not raise it goes again. Where they
 * mostly wait for the platform, there is a batch of them at least.
 */
export class BacklogProbe {
  private window: { sinceMs: number; ended: number; busyMs: number } | undefined;
  private bestPerMs = 0;
  private settled = false;

  /** The queue is empty: what was measured holds no longer. */
  reset(): void {
    this.window = undefined;
    this.bestPerMs = 0;
    this.settled = false;
  }

  /** What to do while jobs wait. */
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
