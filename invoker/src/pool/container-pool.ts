import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import { ActionQueue, longRunMs } from './action-queue.js';
import type { PoolJob } from './action-queue.js';
import { ContainerAllocator } from './container-allocator.js';
import type { AllocatorOptions } from './container-allocator.js';
import { restMember, resumeMember, worse } from './pool-member.js';
import type { Disposition, PoolMember } from './pool-member.js';
import type { Snapshots, SnapshotWish } from './snapshots.js';
import type { StemCellCounts } from './stem-cells.js';

/** Bounds of a pool. */
export interface PoolOptions extends AllocatorOptions {
  /** Idle time after which a container leaves its action, and later its namespace, ms. */
  idleContainerMs: number;
}

/** Contents of a pool at one moment. */
export interface PoolSnapshot {
  claimedMiB: number;
  /** Number of actions' containers. */
  containers: number;
  idle: number;
  /** Number of containers that wait for a future action. */
  prewarmed: number;
  waitingJobs: number;
}

const sweepEveryMs = 1000;
/** Assumed time of a cold start until one is measured, ms. */
const firstStartMs = 100;

/**
 * Finds each job a container, in this order: a warm one of its action; one that waits for an action; an idle one of another
 * action of the namespace, after an unload; a new one, if needed after eviction of idle ones, the longest idle first.
 * Otherwise the job waits.
 *
 * An action with containers gets another one only if the expected wait exceeds the time of a start: runs much shorter than a
 * cold start are served better after a millisecond in the queue.
 */
export class ContainerPool<Job extends PoolJob<Job>> {
  private readonly queues = new Map<string, ActionQueue<Job>>();
  private closing = false;
  private readonly allocator: ContainerAllocator<Job>;

  constructor(
    factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly options: PoolOptions,
    private readonly logger: Logger,
  ) {
    this.allocator = new ContainerAllocator(factory, clock, options, logger, this.queues, (queue) => this.serve(queue));
    this.scheduleSweep();
  }

  /** Starts the configured stem cells; resolves when all have started or failed. */
  prewarm(): Promise<void> {
    return this.allocator.unassigned.stemCells.fill();
  }

  /** Takes a job, and calls its `run` or `fail` in the end. */
  submit(job: Job): void {
    if (job.spec.memoryMiB > this.options.memoryMiB) {
      job.fail(
        new ProvisioningError(
          `the action's memory, ${job.spec.memoryMiB} MB, is more than this invoker has, ${this.options.memoryMiB} MB`,
        ),
      );
      return;
    }
    const queue = this.queueOf(job);
    const member = queue.batch === 1 && queue.waiting.length === 0 ? queue.takeSlot() : undefined;
    if (member !== undefined) {
      this.start(queue, member, job);
      return;
    }
    const nowMs = this.clock.monotonicMs();
    queue.waiting.push({ job, sinceMs: nowMs });
    if (queue.batch === 1) return this.allocator.grow(queue);
    queue.recordArrival(nowMs);
    this.serve(queue);
  }

  /** Starts a container of the job's action and loads its code, for future jobs; calls the job's `launched` in the end. */
  launch(job: Job): void {
    void this.allocator.launch(this.queueOf(job), job).then((problem) => job.launched?.(problem));
  }

  snapshot(): PoolSnapshot {
    let containers = 0;
    let idle = 0;
    let waitingJobs = 0;
    for (const queue of this.queues.values()) {
      containers += queue.members.size;
      waitingJobs += queue.waiting.length;
      for (const member of queue.members) if (member.active === 0) idle++;
    }
    const { claimedMiB } = this.allocator.unassigned.memory;
    return { claimedMiB, containers, idle, prewarmed: this.prewarmed().length, waitingJobs };
  }

  /** Has a container made ahead that serves a start with this spec, unless there is one. */
  foresee(spec: ContainerSpec): void {
    if (!this.closing) this.allocator.unassigned.stemCells.foresee(spec);
  }

  /** Notes that a function was loaded. `wish`: it wants snapshots. */
  loaded(of: string, revision: string, wish?: SnapshotWish): void {
    const { snapshots } = this.allocator.unassigned;
    snapshots.loaded(of, revision);
    if (wish !== undefined) snapshots.want(wish);
  }

  /** The snapshots of functions. */
  get snapshots(): Pick<Snapshots, 'list' | 'figures' | 'standingMiB'> {
    return this.allocator.unassigned.snapshots;
  }

  /** Containers that are ready for a future action. */
  prewarmed(): Container[] {
    return this.allocator.unassigned.list();
  }

  /** Counts of stem cells by kind and memory. */
  stemCellCounts(): Iterable<Readonly<StemCellCounts>> {
    return this.allocator.unassigned.stemCells.counts();
  }

  /** Real memory of the containers that are ready with learned modules, MiB. */
  learnedMiB(): number {
    return this.allocator.unassigned.stemCells.learnedMiB();
  }

  /** Destroys a container, idle or busy; its runs end as lost. */
  end(container: Container): void {
    this.allocator.end(container);
  }

  /** Drops the jobs that wait and of which this is asked, and returns how many there were. What runs goes on. */
  dropWaiting(drops: (job: Job) => boolean): number {
    let dropped = 0;
    for (const queue of this.queues.values()) {
      for (let left = queue.waiting.length; left > 0; left -= 1) {
        const one = queue.waiting.shift();
        if (one === undefined || drops(one.job)) dropped += 1;
        else queue.waiting.push(one);
      }
      if (queue.waiting.length === 0) this.allocator.settle(queue);
    }
    return dropped;
  }

  /** Destroys every container, also busy ones. */
  async close(): Promise<void> {
    this.closing = true;
    await this.allocator.close();
  }

  private queueOf(job: Job): ActionQueue<Job> {
    let queue = this.queues.get(job.key);
    if (queue === undefined) {
      queue = new ActionQueue(job.key, job.namespace, job.codeOf, job.spec, job.batch, firstStartMs);
      this.queues.set(job.key, queue);
    }
    queue.keepsWarm = job.keepsWarm;
    queue.spec = job.spec; // More may have been learned of its imports.
    return queue;
  }

  private start(queue: ActionQueue<Job>, member: PoolMember, job: Job): void {
    const startedMs = this.clock.monotonicMs();
    // The job takes a container that was readied ahead; another one is readied for the next long run.
    const takesReadied = member.initialized && !member.used;
    if (takesReadied && job.readiesAhead && (queue.runMs ?? 0) > longRunMs) this.allocator.readyAnother(queue, job);
    const run = (): void => {
      const others = member.container.canBatch ? queue.takeBatch(job) : [];
      const onInitialized = (): void => {
        if (member.origin === 'cold') queue.recordStart(member.createMs + this.clock.monotonicMs() - startedMs);
        if (job.readiesAhead) this.allocator.readyAnother(queue, job);
        if (member.active < queue.spec.concurrency && !member.retiring) {
          queue.makeFree(member);
          this.serve(queue);
        }
      };
      void job.run(member, onInitialized, others).then((disposition) => {
        if (member.initialized) queue.recordRun(member, this.clock.monotonicMs());
        this.finish(queue, member, disposition);
      });
    };
    const resuming = resumeMember(member);
    if (resuming === undefined) {
      run();
      return;
    }
    resuming.then(run, (error: Error) => {
      this.logger.warn({ container: member.container.id, error: error.message }, 'a container could not be resumed');
      queue.waiting.push({ job, sinceMs: startedMs });
      this.finish(queue, member, 'discard');
    });
  }

  private finish(queue: ActionQueue<Job>, member: PoolMember, disposition: Disposition): void {
    member.active--;
    member.lastUsedMs = this.clock.monotonicMs();
    const starved = this.allocator.starvedBefore(queue);
    if (disposition !== 'keep' || starved !== undefined || this.closing) {
      member.retiring = true;
      member.disposition = worse(member.disposition, disposition);
    }
    if (member.retiring) {
      queue.remove(member);
      if (member.active === 0) this.allocator.eviction.leave(queue, member, starved);
      this.allocator.grow(queue);
      return;
    }
    queue.makeFree(member);
    this.serve(queue);
    if (member.active > 0) return;
    this.allocator.eviction.trim(queue);
    this.allocator.unblock();
  }

  /** Gives free slots to waiting jobs whose batch need not wait for further jobs. */
  private serve(queue: ActionQueue<Job>): void {
    while (queue.waiting.length > 0) {
      const waitMs = queue.free.length === 0 ? 0 : queue.batchWaitMs(this.clock.monotonicMs());
      if (waitMs > 0) return this.serveLater(queue, waitMs);
      const member = queue.takeSlot();
      if (member === undefined) break;
      const next = queue.waiting.shift();
      if (next === undefined) break;
      this.start(queue, member, next.job);
    }
    if (queue.waiting.length > 0) this.allocator.grow(queue);
    else this.allocator.settle(queue);
  }

  private serveLater(queue: ActionQueue<Job>, waitMs: number): void {
    if (queue.batchTimerSet) return;
    queue.batchTimerSet = true;
    this.clock.setTimer(waitMs, () => {
      queue.batchTimerSet = false;
      if (!this.closing) this.serve(queue);
    });
  }

  private scheduleSweep(): void {
    this.clock.setBackgroundTimer(sweepEveryMs, () => {
      if (this.closing) return;
      this.sweep();
      this.scheduleSweep();
    });
  }

  /** Freezes idle containers. Long idle ones leave their action, and later their namespace. */
  private sweep(): void {
    const { pauseGraceMs, idleContainerMs } = this.options;
    const { eviction, unassigned } = this.allocator;
    const nowMs = this.clock.monotonicMs();
    for (const queue of this.queues.values()) {
      for (const member of [...queue.members]) {
        if (member.active > 0) continue;
        const idleMs = nowMs - member.lastUsedMs;
        if (idleMs >= idleContainerMs) eviction.retire(queue, member);
        else if (idleMs >= pauseGraceMs) restMember(member, this.logger);
      }
    }
    unassigned.unloaded.expire(idleContainerMs);
    // Stem cells that were starting at the last attempt can be given up now.
    this.allocator.unblock();
    this.allocator.refillLacking();
  }
}
