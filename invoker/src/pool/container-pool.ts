import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Logger } from '@gpuwhisk/common/logging';
import { ProvisioningError } from '../containers/container-factory.js';
import type { Container, ContainerFactory } from '../containers/container-factory.js';
import { ActionQueue } from './action-queue.js';
import type { PoolJob } from './action-queue.js';
import type { LoadingStart, PoolMember } from './pool-member.js';
import { StemCells } from './stem-cells.js';
import type { StemCellConfig } from './stem-cells.js';

/** Bounds of a pool. */
export interface PoolOptions {
  /** Memory that all containers may claim together, by their specs, MiB. */
  memoryMiB: number;
  /** Containers that are started at once, at most. */
  maxStarting: number;
  /** Idle time after which a container is frozen, ms. */
  pauseGraceMs: number;
  /** Idle time after which a container is removed, ms. */
  idleContainerMs: number;
  /** Containers that are kept started ahead of need. */
  stemCells: readonly StemCellConfig[];
}

/** What a pool holds at one moment. */
export interface PoolSnapshot {
  claimedMiB: number;
  containers: number;
  idle: number;
  prewarmed: number;
  waitingJobs: number;
}

const sweepEveryMs = 1000;
/** A guess of a cold start until one was measured, ms. */
const firstStartMs = 100;
/** A start pays if the wait is expected to be so many times as long: it takes processor time from the runs, too. */
const worthStarts = 2;
/** For shorter runs it is tried out how many containers serve them best, ms. */
const longRunMs = 20;
/** Others' idle turns are passed over for this long before an action without any container takes their memory, ms. */
const starvedAfterMs = 100;

/**
 * Finds each job a container: a warm one of its action, else a prewarmed one of its kind, else a new one if the
 * memory is there, if need be after removing idle ones, the longest idle first; else the job waits.
 *
 * An action that has containers gets another only when the wait for those is expected to outlast a start: runs
 * much shorter than a cold start are served better by queueing for a millisecond.
 */
export class ContainerPool {
  private readonly queues = new Map<string, ActionQueue>();
  /** Actions whose next container waits for memory or a start slot, longest waiting first. */
  private readonly blocked = new Set<ActionQueue>();
  private claimedMiB = 0;
  private releasingMiB = 0;
  private starting = 0;
  private closing = false;
  private readonly destructions = new Set<Promise<void>>();
  private readonly stemCells: StemCells;

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly options: PoolOptions,
    private readonly logger: Logger,
  ) {
    const memory = {
      claim: (memoryMiB: number) => this.claimFree(memoryMiB),
      release: (memoryMiB: number) => this.release(memoryMiB),
    };
    this.stemCells = new StemCells(factory, clock, options.stemCells, memory, logger);
    this.scheduleSweep();
  }

  /** Starts the configured stem cells; resolves when all have started or failed. */
  prewarm(): Promise<void> {
    return this.stemCells.fill();
  }

  /** Takes a job; it ends in `run` or `fail`. */
  submit(job: PoolJob): void {
    if (job.spec.memoryMiB > this.options.memoryMiB) {
      job.fail(
        new ProvisioningError(
          `the action's memory, ${job.spec.memoryMiB} MB, is more than this invoker has, ${this.options.memoryMiB} MB`,
        ),
      );
      return;
    }
    let queue = this.queues.get(job.key);
    if (queue === undefined) {
      queue = new ActionQueue(job.key, job.spec, firstStartMs);
      this.queues.set(job.key, queue);
    }
    const member = queue.waiting.length === 0 ? queue.takeSlot() : undefined;
    if (member !== undefined) {
      this.start(queue, member, job);
      return;
    }
    queue.waiting.push({ job, sinceMs: this.clock.monotonicMs() });
    this.grow(queue);
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
    return { claimedMiB: this.claimedMiB, containers, idle, prewarmed: this.stemCells.count(), waitingJobs };
  }

  /** Containers that are ready for an action yet to come. */
  prewarmed(): Container[] {
    return this.stemCells.list();
  }

  /** Destroys every container, busy ones too. */
  async close(): Promise<void> {
    this.closing = true;
    await this.stemCells.close();
    for (const queue of this.queues.values()) for (const member of [...queue.members]) this.discard(queue, member);
    await Promise.all(this.destructions);
  }

  private start(queue: ActionQueue, member: PoolMember, job: PoolJob): void {
    const startedMs = this.clock.monotonicMs();
    // Readied ahead and taken now: the next long run shall find one, too.
    const takesReadied = member.initialized && !member.used;
    if (takesReadied && job.readiesAhead && (queue.runMs ?? 0) > longRunMs) this.readyAnother(queue, job);
    const run = (): void => {
      void job
        .run(member, () => {
          if (member.origin === 'cold') queue.recordStart(member.createMs + this.clock.monotonicMs() - startedMs);
          if (job.readiesAhead) this.readyAnother(queue, job);
          if (member.active < queue.spec.concurrency && !member.retiring) {
            queue.makeFree(member);
            this.serve(queue);
          }
        })
        .then((disposition) => {
          if (member.initialized) queue.recordRun(member, this.clock.monotonicMs());
          this.finish(queue, member, disposition === 'discard');
        });
    };
    const resuming = this.resume(member);
    if (resuming === undefined) {
      run();
      return;
    }
    resuming.then(run, (error: Error) => {
      this.logger.warn({ container: member.container.id, error: error.message }, 'a container could not be resumed');
      queue.waiting.push({ job, sinceMs: startedMs });
      this.finish(queue, member, true);
    });
  }

  private finish(queue: ActionQueue, member: PoolMember, discard: boolean): void {
    member.active--;
    member.lastUsedMs = this.clock.monotonicMs();
    if (discard || this.closing) member.retiring = true;
    if (!member.retiring && this.mustYield(queue)) member.retiring = true;
    if (member.retiring) {
      queue.remove(member);
      if (member.active === 0) this.discard(queue, member);
      this.grow(queue);
      return;
    }
    queue.makeFree(member);
    this.serve(queue);
    if (member.active === 0 && this.blocked.size > 0) this.unblock();
  }

  /** Hands waiting jobs to free slots. */
  private serve(queue: ActionQueue): void {
    while (queue.waiting.length > 0) {
      const member = queue.takeSlot();
      if (member === undefined) break;
      const next = queue.waiting.shift();
      if (next === undefined) break;
      this.start(queue, member, next.job);
    }
    if (queue.waiting.length > 0) this.grow(queue);
    else {
      this.blocked.delete(queue);
      queue.backlog.reset();
    }
  }

  /** Whether an action that has no container at all came before this one's next job and waits for memory. */
  private mustYield(queue: ActionQueue): boolean {
    const first = this.firstStarved();
    if (first === undefined || first === queue) return false;
    const head = queue.waiting.peek();
    return head === undefined || head.sinceMs > (first.waiting.peek()?.sinceMs ?? Infinity);
  }

  private firstStarved(): ActionQueue | undefined {
    if (this.blocked.size === 0 || this.starting >= this.options.maxStarting) return undefined;
    const nowMs = this.clock.monotonicMs();
    for (const queue of this.blocked) {
      const head = queue.waiting.peek();
      if (
        queue.members.size === 0 &&
        queue.starting === 0 &&
        head !== undefined &&
        nowMs - head.sinceMs >= starvedAfterMs
      ) {
        return this.releasingMiB >= queue.spec.memoryMiB ? undefined : queue;
      }
    }
    return undefined;
  }

  /** Starts containers for the jobs that wait, as many as are worth it and possible. */
  private grow(queue: ActionQueue): void {
    while (!this.closing && queue.waiting.length > queue.starting * queue.spec.concurrency) {
      if (queue.members.size > 0 && !this.worthAdding(queue)) {
        this.checkLater(queue);
        return;
      }
      const spec = queue.spec;
      const stem = this.stemCells.take(spec);
      if (stem !== undefined) {
        this.adopt(queue, stem, stem.canUnload ? 'injected' : 'prewarmed', 0);
        continue;
      }
      // A further container is worth nobody's warm one: it takes only what was not used for a while.
      const minIdleMs = queue.members.size > 0 ? this.options.pauseGraceMs : 0;
      if (this.starting >= this.options.maxStarting || !this.claim(spec.memoryMiB, minIdleMs)) {
        this.blocked.add(queue);
        return;
      }
      this.create(queue);
    }
    if (queue.waiting.length === 0 || queue.starting > 0) this.blocked.delete(queue);
  }

  /** Whether the jobs that wait need more than the containers there are: those are too slow, stuck, or saturated. */
  private worthAdding(queue: ActionQueue): boolean {
    const nowMs = this.clock.monotonicMs();
    const waitedMs = nowMs - (queue.waiting.peek()?.sinceMs ?? nowMs);
    if (waitedMs > queue.startMs && nowMs - queue.lastEndMs > queue.startMs) return true;
    if (queue.runMs === undefined) return true;
    if (queue.runMs > longRunMs && queue.expectedWaitMs() > queue.startMs * worthStarts) return true;
    if (queue.starting > 0) return false;
    const advice = queue.backlog.advise(nowMs, queue.progress());
    if (advice === 'drop' && queue.members.size > 1) this.retireYoungest(queue);
    return advice === 'add';
  }

  /** The last container that was added takes no more runs. */
  private retireYoungest(queue: ActionQueue): void {
    const youngest = [...queue.members].at(-1) as PoolMember;
    youngest.retiring = true;
    queue.remove(youngest);
    if (youngest.active === 0) this.discard(queue, youngest);
  }

  /** Looks again once the head of the queue has waited as long as a start takes. */
  private checkLater(queue: ActionQueue): void {
    if (queue.checkSet) return;
    queue.checkSet = true;
    this.clock.setBackgroundTimer(Math.ceil(queue.startMs) + 1, () => {
      queue.checkSet = false;
      if (queue.waiting.length > 0) this.grow(queue);
    });
  }

  private create(queue: ActionQueue): void {
    const startedMs = this.clock.monotonicMs();
    queue.starting++;
    this.starting++;
    this.stemCells.noteColdStart(queue.spec);
    this.factory
      .create(queue.spec)
      .then(
        (container) => {
          this.settleStart(queue);
          this.adopt(queue, container, 'cold', this.clock.monotonicMs() - startedMs);
        },
        (error: unknown) => {
          this.settleStart(queue);
          this.release(queue.spec.memoryMiB);
          const reason = error instanceof Error ? error.message : String(error);
          queue.waiting.shift()?.job.fail(error instanceof ProvisioningError ? error : new ProvisioningError(reason));
          if (queue.waiting.length > 0) this.grow(queue);
          else this.forget(queue);
        },
      )
      .then(() => this.unblock())
      .catch((error: unknown) => this.logger.error({ error: String(error) }, 'the container pool failed'));
  }

  /** Readies a container for the next run that finds the others busy, if none is and there is memory for it. */
  private readyAnother(queue: ActionQueue, job: PoolJob): void {
    if (queue.readying || this.closing || queue.idleCount() > 0) return;
    const { spec } = queue;
    const stem = this.stemCells.take(spec);
    if (stem === undefined && !this.claimFree(spec.memoryMiB)) return;
    queue.readying = true;
    const startedMs = this.clock.monotonicMs();
    const made = stem === undefined ? this.factory.create(spec) : Promise.resolve(stem);
    made
      .then(async (container) => {
        const member = this.memberOf(container, 'prewarmed', this.clock.monotonicMs() - startedMs);
        member.initialized = await job.ready(member);
        if (member.initialized && !this.closing) this.join(queue, member);
        else this.remove(container);
      })
      .catch((error: unknown) => {
        this.release(spec.memoryMiB);
        this.logger.warn({ kind: spec.kind, error: String(error) }, 'a container could not be readied ahead');
      })
      .finally(() => {
        queue.readying = false;
        this.forget(queue);
      });
  }

  private settleStart(queue: ActionQueue): void {
    queue.starting--;
    this.starting--;
  }

  private adopt(queue: ActionQueue, container: Container, origin: LoadingStart, createMs: number): void {
    this.join(queue, this.memberOf(container, origin, createMs));
  }

  private memberOf(container: Container, origin: LoadingStart, createMs: number): PoolMember {
    return {
      container,
      origin,
      createMs,
      initialized: false,
      used: false,
      active: 0,
      retiring: false,
      discarded: false,
      paused: false,
      pausing: undefined,
      resuming: undefined,
      countedBusyMs: 0,
      lastUsedMs: this.clock.monotonicMs(),
    };
  }

  private join(queue: ActionQueue, member: PoolMember): void {
    queue.members.add(member);
    void member.container.exited.then(() => this.lost(queue, member));
    if (this.closing) {
      this.discard(queue, member);
      return;
    }
    queue.makeFree(member);
    this.serve(queue);
  }

  /** A container ended by itself; a run on it sees that as its outcome. */
  private lost(queue: ActionQueue, member: PoolMember): void {
    if (!queue.members.has(member)) return;
    member.retiring = true;
    queue.remove(member);
    if (member.active === 0) this.discard(queue, member);
  }

  private discard(queue: ActionQueue, member: PoolMember): void {
    queue.remove(member);
    if (member.discarded) return;
    member.discarded = true;
    this.remove(member.container, () => this.forget(queue));
  }

  private remove(container: Container, removed?: () => void): void {
    const { memoryMiB } = container.spec;
    this.releasingMiB += memoryMiB;
    const destruction = container
      .destroy()
      .catch((error: unknown) =>
        this.logger.error({ container: container.id, error: String(error) }, 'a container could not be destroyed'),
      )
      .then(() => {
        this.destructions.delete(destruction);
        this.releasingMiB -= memoryMiB;
        this.release(memoryMiB);
        removed?.();
      });
    this.destructions.add(destruction);
  }

  private forget(queue: ActionQueue): void {
    if (queue.members.size === 0 && queue.waiting.length === 0 && queue.starting === 0 && !queue.readying) {
      // A slow removal may end when the action has a new queue already.
      if (this.queues.get(queue.key) === queue) this.queues.delete(queue.key);
      this.blocked.delete(queue);
    }
  }

  private claimFree(memoryMiB: number): boolean {
    if (this.claimedMiB + memoryMiB > this.options.memoryMiB) return false;
    this.claimedMiB += memoryMiB;
    return true;
  }

  /** Takes memory for one container, or makes room for later by removing containers that idle for `minIdleMs`. */
  private claim(memoryMiB: number, minIdleMs: number): boolean {
    if (this.claimFree(memoryMiB)) return true;
    this.evict(this.claimedMiB + memoryMiB - this.options.memoryMiB - this.releasingMiB, minIdleMs);
    return false;
  }

  private release(memoryMiB: number): void {
    this.claimedMiB -= memoryMiB;
    this.unblock();
  }

  private unblock(): void {
    if (this.closing) return;
    for (const queue of [...this.blocked]) {
      if (this.starting >= this.options.maxStarting) return;
      this.blocked.delete(queue);
      this.grow(queue);
    }
  }

  /**
   * Removes idle containers until `neededMiB` will be free: first those of actions that have several, the longest idle
   * first, then stem cells; none if that is not possible.
   */
  private evict(neededMiB: number, minIdleMs: number): void {
    if (neededMiB <= 0) return;
    const idle: { queue: ActionQueue; member: PoolMember; isOnly: boolean }[] = [];
    let available = this.stemCells.heldMiB();
    const idleSinceMs = this.clock.monotonicMs() - minIdleMs;
    for (const queue of this.queues.values()) {
      let others = queue.members.size;
      for (const member of queue.members) {
        if (member.active > 0 || member.lastUsedMs > idleSinceMs) continue;
        idle.push({ queue, member, isOnly: --others === 0 });
        available += queue.spec.memoryMiB;
      }
    }
    if (available < neededMiB) return;
    idle.sort((a, b) => Number(a.isOnly) - Number(b.isOnly) || a.member.lastUsedMs - b.member.lastUsedMs);
    let freed = 0;
    for (const { queue, member } of idle) {
      if (freed >= neededMiB) break;
      freed += queue.spec.memoryMiB;
      this.discard(queue, member);
    }
    for (const container of this.stemCells.giveUp(neededMiB - freed)) this.remove(container);
  }

  private scheduleSweep(): void {
    this.clock.setBackgroundTimer(sweepEveryMs, () => {
      if (this.closing) return;
      this.sweep();
      this.scheduleSweep();
    });
  }

  /** Freezes containers that idle, and removes those that idled for long. */
  private sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const queue of this.queues.values()) {
      for (const member of [...queue.members]) {
        if (member.active > 0) continue;
        const idleMs = nowMs - member.lastUsedMs;
        if (idleMs >= this.options.idleContainerMs) this.discard(queue, member);
        else if (idleMs >= this.options.pauseGraceMs && !member.paused) this.pause(member);
      }
    }
    // What a stem cell that was starting held back can be given up now.
    this.unblock();
  }

  /** Thaws a frozen container; undefined if it runs already. A second job waits for the same thaw. */
  private resume(member: PoolMember): Promise<void> | undefined {
    if (member.paused) {
      member.paused = false;
      // Not before the freeze is done: overtaken, it would take effect in the middle of the run.
      const paused = member.pausing ?? Promise.resolve();
      member.resuming = paused
        .then(() => member.container.resume())
        .finally(() => {
          member.resuming = undefined;
        });
    }
    return member.resuming;
  }

  private pause(member: PoolMember): void {
    member.paused = true;
    member.pausing = member.container.pause().catch((error: unknown) => {
      member.paused = false;
      this.logger.warn({ container: member.container.id, error: String(error) }, 'a container could not be paused');
    });
  }
}
