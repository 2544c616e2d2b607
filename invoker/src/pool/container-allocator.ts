import type { Logger } from '@gpuwhisk/common/logging';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError, withoutLearned } from '../containers/container-factory.js';
import type { Container, ContainerFactory, LearnedFor } from '../containers/container-factory.js';
import { adviseGrowth } from './action-queue.js';
import type { ActionQueue, PoolJob } from './action-queue.js';
import { Eviction } from './eviction.js';
import type { Allocator } from './eviction.js';
import type { DeviceBudget } from './memory-budget.js';
import { newMember } from './pool-member.js';
import type { LoadingStart, PoolMember } from './pool-member.js';
import type { StemCellOptions } from './stem-cells.js';
import { UnassignedContainers } from './unassigned-containers.js';

/** Bounds on containers. */
export interface AllocatorOptions extends StemCellOptions {
  /** Total memory that containers may claim by their specs, MiB. */
  memoryMiB: number;
  /** Memory of GPUs; absent on nodes without GPUs. */
  devices?: DeviceBudget;
  /** Largest number of containers that start at once. */
  maxStarting: number;
  /** Idle time after which a container is frozen, and may serve another action of its namespace, ms. */
  pauseGraceMs: number;
  /** Whether containers with learned modules pass from one function of a namespace to another before new ones are made. */
  reusesLearned?: boolean;
}

/** Wait after which an action without any container takes the memory of other actions' containers between runs, ms. */
const starvedAfterMs = 100;
/** Longest wait of a launch for memory, and the interval of its checks, ms. */
const launchWaitMs = 10_000;
const launchLookMs = 20;
/** Longest wait for a container with learned modules, ms. */
const longestHopeMs = 300;
/** Assumed time of a start in a container with learned modules, or in a copy, ms. */
const readyStartMs = 10;

/** Allocates containers to actions: prewarmed, unloaded, evicted from another action, or new. */
export class ContainerAllocator<Job extends PoolJob<Job>> implements Allocator<Job> {
  readonly unassigned: UnassignedContainers;
  readonly eviction: Eviction<Job>;
  /** Actions whose next container waits for memory or a start slot, longest waiting first. */
  private readonly blocked = new Set<ActionQueue<Job>>();
  /** Actions that wait for a container with their learned modules. */
  private readonly hopeful = new Set<ActionQueue<Job>>();
  private starting = 0;
  private closing = false;

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly options: AllocatorOptions,
    private readonly logger: Logger,
    private readonly queues: Map<string, ActionQueue<Job>>,
    /** Called when an action has a new free slot. */
    private readonly serve: (queue: ActionQueue<Job>) => void,
  ) {
    this.unassigned = new UnassignedContainers(factory, clock, options, logger, () => this.unblock());
    this.eviction = new Eviction(factory, clock, queues, this.unassigned, this);
  }

  /** Destroys every container, also busy ones. */
  async close(): Promise<void> {
    this.closing = true;
    this.eviction.close();
    await this.unassigned.close();
    for (const queue of this.queues.values()) {
      for (const member of [...queue.members]) this.eviction.discard(queue, member);
    }
    await this.unassigned.removals.settled();
  }

  /** Destroys a container in any state. */
  end(container: Container): void {
    const { stemCells, unloaded } = this.unassigned;
    for (const store of [stemCells, unloaded]) if (store.has(container)) return store.replace(container);
    for (const queue of this.queues.values()) {
      const member = [...queue.members].find((one) => one.container === container);
      if (member === undefined) continue;
      this.lost(queue, member);
      if (member.active === 0) return;
    }
    container
      .destroy()
      .catch((error: unknown) =>
        this.logger.error({ container: container.id, error: String(error) }, 'a container could not be destroyed'),
      );
  }

  /** Allocates containers for waiting jobs, as many as are worthwhile and possible. */
  grow(queue: ActionQueue<Job>): void {
    const { spec } = queue;
    const { maxStarting, pauseGraceMs } = this.options;
    while (!this.closing && queue.waiting.length > queue.starting * spec.concurrency * queue.batch) {
      if (queue.members.size > 0 && !this.worthAdding(queue)) {
        this.checkLater(queue);
        return;
      }
      const { memory, snapshots } = this.unassigned;
      if (snapshots.has(queue.key) && this.starting < maxStarting && memory.claim(spec)) {
        this.create(queue);
        continue;
      }
      const loaded = spec.learned && this.unassigned.takeLoaded(queue, spec);
      if (loaded === undefined && spec.learned !== undefined && this.options.reusesLearned === true) {
        if (this.eviction.takeLoaded(queue)) continue;
        if (this.hopes(queue, spec.learned)) return;
      }
      const ready = loaded ?? this.unassigned.take(queue, spec);
      if (ready !== undefined) {
        this.adopt(queue, ready);
        continue;
      }
      if (this.eviction.takeFromOther(queue, pauseGraceMs)) continue;
      if (this.starting < maxStarting) {
        if (memory.claim(spec)) {
          this.create(queue);
          continue;
        }
        // A further container of an action evicts only containers that have idled for `pauseGraceMs`.
        if (this.eviction.makeRoom(queue, queue.members.size > 0 ? pauseGraceMs : 0)) continue;
      }
      this.blocked.add(queue);
      return;
    }
    if (queue.waiting.length === 0 || queue.starting > 0) this.blocked.delete(queue);
  }

  /** Called when no job of the action waits any more. */
  settle(queue: ActionQueue<Job>): void {
    this.blocked.delete(queue);
    this.hopeful.delete(queue);
    queue.backlog.reset();
  }

  adopt(queue: ActionQueue<Job>, container: Container): void {
    this.join(queue, this.member(container, container.canUnload ? 'injected' : 'prewarmed', 0));
  }

  /** Allocates containers for actions that wait for memory or a start slot. */
  unblock(): void {
    if (this.closing) return;
    for (const queue of [...this.hopeful]) {
      this.hopeful.delete(queue);
      this.grow(queue);
    }
    if (this.blocked.size === 0) return;
    for (const queue of [...this.blocked]) {
      if (this.starting >= this.options.maxStarting) return;
      this.blocked.delete(queue);
      this.grow(queue);
    }
  }

  /** Starts stem cells that lacked memory, and makes a snapshot that has waited, unless actions wait for memory. */
  refillLacking(): void {
    if (this.blocked.size > 0) return;
    this.unassigned.stemCells.refillLacking();
    this.unassigned.snapshots.wantWaiting();
  }

  forget(queue: ActionQueue<Job>): void {
    if (queue.members.size > 0 || queue.waiting.length > 0 || queue.starting > 0 || queue.readying > 0) return;
    // The action may have a new queue by the end of a slow removal.
    if (this.queues.get(queue.key) === queue) this.queues.delete(queue.key);
    this.blocked.delete(queue);
    this.hopeful.delete(queue);
  }

  /**
   * An action without any container that waits for memory longer than this action's next job; undefined if there is none.
   */
  starvedBefore(queue: ActionQueue<Job>): ActionQueue<Job> | undefined {
    const first = this.firstStarved();
    if (first === undefined || first === queue || !this.unassigned.memory.helps(queue.spec, first.spec))
      return undefined;
    const head = queue.waiting.peek();
    return head === undefined || head.sinceMs > (first.waiting.peek()?.sinceMs ?? Infinity) ? first : undefined;
  }

  /** Readies a container for the next run that finds the others busy, if no other is readied and there is memory. */
  readyAnother(queue: ActionQueue<Job>, job: Job): void {
    if (queue.readying > 0 || this.closing || queue.idleCount() > 0) return;
    const { namespace, spec } = queue;
    const ready = this.unassigned.take(queue, spec);
    if (ready === undefined && !this.unassigned.memory.claim(spec)) return;
    void this.load(queue, job, ready, true).then((problem) => {
      if (problem === undefined) return;
      this.logger.warn({ kind: spec.kind, namespace, problem }, 'a container could not be readied ahead');
    });
  }

  /**
   * Starts a container of the action and loads its code ahead of runs, even if the action has idle containers. Waits at most
   * `launchWaitMs` for memory. Resolves with the reason of a failure, or undefined.
   */
  async launch(queue: ActionQueue<Job>, job: Job): Promise<string | undefined> {
    const { spec } = queue;
    const untilMs = this.clock.monotonicMs() + launchWaitMs;
    let madeRoom = false;
    // Keeps the queue from being forgotten during the wait.
    queue.readying++;
    try {
      while (!this.closing) {
        const ready = this.unassigned.take(queue, spec) ?? takeSpare(queue);
        if (ready !== undefined || this.unassigned.memory.claim(spec)) return await this.load(queue, job, ready, false);
        if (!madeRoom) this.eviction.makeRoom(queue, 0);
        madeRoom = true;
        if (this.clock.monotonicMs() >= untilMs) return 'there is no memory for it';
        await sleep(this.clock, launchLookMs);
      }
      return 'the invoker is shutting down';
    } finally {
      queue.readying--;
      this.forget(queue);
    }
  }

  /**
   * Loads the code into `ready`, or into a new container whose memory is claimed. Resolves with the reason of a failure, or
   * undefined.
   */
  private async load(
    queue: ActionQueue<Job>,
    job: Job,
    ready: Container | undefined,
    givesWay: boolean,
  ): Promise<string | undefined> {
    const { spec } = queue;
    const startedMs = this.clock.monotonicMs();
    queue.readying++;
    try {
      const container = ready ?? (await this.make(queue, true));
      if (givesWay) await container.giveWay(true);
      const member = this.member(container, 'prewarmed', this.clock.monotonicMs() - startedMs);
      const problem = await job.ready(member);
      if (givesWay) await container.giveWay(false);
      member.initialized = problem === undefined;
      if (member.initialized && !this.closing) this.join(queue, member);
      else this.unassigned.removals.remove(container);
      this.eviction.trim(queue);
      if (problem === undefined && member.gone) return 'its namespace has its maximum of idle instances';
      return problem;
    } catch (error) {
      if (ready === undefined) this.unassigned.memory.release(spec);
      return String(error);
    } finally {
      queue.readying--;
      this.forget(queue);
    }
  }

  private firstStarved(): ActionQueue<Job> | undefined {
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
        return this.unassigned.memory.isComing(queue.spec) ? undefined : queue;
      }
    }
    return undefined;
  }

  /** Expected time of a start, ms: a moment if a snapshot or a container with the action's learned modules is at hand. */
  private startMsOf(queue: ActionQueue<Job>): number {
    const { spec, startMs } = queue;
    if (this.unassigned.snapshots.has(queue.key)) return Math.min(startMs, readyStartMs);
    if (spec.learned === undefined || startMs <= readyStartMs) return startMs;
    const isReady = this.unassigned.stemCells.hasLoaded(spec);
    return isReady || (this.options.reusesLearned === true && this.eviction.hasLoadedIdle(queue))
      ? readyStartMs
      : startMs;
  }

  private worthAdding(queue: ActionQueue<Job>): boolean {
    const advice = adviseGrowth(queue, this.clock.monotonicMs(), this.startMsOf(queue));
    const youngest = [...queue.members].at(-1);
    if (advice === 'drop' && queue.members.size > 1 && youngest !== undefined) {
      // The container that was added last takes no more runs.
      youngest.retiring = true;
      queue.remove(youngest);
      if (youngest.active === 0) this.eviction.leave(queue, youngest);
    }
    return advice === 'add';
  }

  /**
   * Lets an action wait for a container with its learned modules that is busy or being made, at most for half of the time
   * that it saves; whether it waits.
   */
  private hopes(queue: ActionQueue<Job>, { savesMs }: LearnedFor): boolean {
    const sinceMs = queue.waiting.peek()?.sinceMs ?? 0;
    const leftMs = Math.min(savesMs / 2, longestHopeMs) - (this.clock.monotonicMs() - sinceMs);
    if (leftMs <= 0) return false;
    if (!this.eviction.isLoadedBusy(queue) && !this.unassigned.stemCells.isComing(queue.spec)) return false;
    this.hopeful.add(queue);
    if (queue.hopeSet) return true;
    queue.hopeSet = true;
    this.clock.setBackgroundTimer(Math.ceil(leftMs), () => {
      queue.hopeSet = false;
      if (this.hopeful.delete(queue) && !this.closing) this.grow(queue);
    });
    return true;
  }

  /** Checks the queue again once its head has waited as long as a start takes. */
  private checkLater(queue: ActionQueue<Job>): void {
    if (queue.checkSet) return;
    queue.checkSet = true;
    this.clock.setBackgroundTimer(Math.ceil(this.startMsOf(queue)) + 1, () => {
      queue.checkSet = false;
      if (queue.waiting.length > 0) this.grow(queue);
    });
  }

  private create(queue: ActionQueue<Job>): void {
    const startedMs = this.clock.monotonicMs();
    queue.starting++;
    this.starting++;
    const { snapshots, stemCells } = this.unassigned;
    if (queue.spec.training === undefined && !snapshots.has(queue.key)) stemCells.noteColdStart(queue.spec);
    const settle = (): void => {
      queue.starting--;
      this.starting--;
    };
    this.make(queue, false)
      .then(
        (container) => {
          settle();
          this.join(queue, this.member(container, 'cold', this.clock.monotonicMs() - startedMs));
        },
        (error: unknown) => {
          settle();
          this.unassigned.memory.release(queue.spec);
          const reason = error instanceof Error ? error.message : String(error);
          queue.waiting.shift()?.job.fail(error instanceof ProvisioningError ? error : new ProvisioningError(reason));
          if (queue.waiting.length > 0) this.grow(queue);
          else this.forget(queue);
        },
      )
      .then(() => this.unblock())
      .catch((error: unknown) => this.logger.error({ error: String(error) }, 'the container pool failed'));
  }

  /** A new container: with the action loaded if there is a snapshot, else with its learned imports where these cost no time. */
  private async make({ key, spec }: ActionQueue<Job>, ahead: boolean): Promise<Container> {
    const copied =
      (await this.unassigned.snapshots.copy(key, ahead)) ?? (spec.learned && (await this.factory.copy?.(spec, ahead)));
    return copied ?? this.factory.create(withoutLearned(spec), ahead);
  }

  private member(container: Container, origin: LoadingStart, createMs: number): PoolMember {
    return newMember(container, origin, createMs, this.clock.monotonicMs());
  }

  private join(queue: ActionQueue<Job>, member: PoolMember): void {
    queue.members.add(member);
    this.unassigned.watch.set(member.container, () => this.lost(queue, member));
    if (this.closing) {
      this.eviction.discard(queue, member);
      return;
    }
    queue.makeFree(member);
    this.serve(queue);
  }

  /** Removes a container that has ended or will be ended; its runs get the end as their outcome. */
  private lost(queue: ActionQueue<Job>, member: PoolMember): void {
    if (!queue.members.has(member)) return;
    member.retiring = true;
    member.disposition = 'discard';
    queue.remove(member);
    if (member.active === 0) this.eviction.discard(queue, member);
  }
}

/** A container of the action without code, which was unloaded for the action; undefined if there is none. */
function takeSpare<Job extends PoolJob<Job>>(queue: ActionQueue<Job>): Container | undefined {
  const spare = queue.free.find((member) => !member.initialized && member.active === 0);
  if (spare !== undefined) queue.remove(spare);
  return spare?.container;
}
