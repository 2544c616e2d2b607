// Eviction of containers from their actions, and the order in which idle containers are chosen.
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Container, ContainerFactory } from '../containers/container-factory.js';
import { longRunMs } from './action-queue.js';
import type { ActionQueue, PoolJob } from './action-queue.js';
import { deviceMemoryOn } from './memory-budget.js';
import type { Measure } from './memory-budget.js';
import type { PoolMember } from './pool-member.js';
import type { UnassignedContainers } from './unassigned-containers.js';

/** The allocator as eviction uses it. */
export interface Allocator<Job extends PoolJob<Job>> {
  /** Gives an action an unloaded container. */
  adopt(queue: ActionQueue<Job>, container: Container): void;
  /** Allocates a container for the jobs of an action, which do not get the expected one. */
  grow(queue: ActionQueue<Job>): void;
  /** Discards the action's queue if it has neither containers nor jobs. */
  forget(queue: ActionQueue<Job>): void;
  /** Called when a container has become available for any action. */
  unblock(): void;
}

/** Evicts containers from their actions: destroys them, or unloads them for other actions of the namespace. */
export class Eviction<Job extends PoolJob<Job>> {
  private closing = false;
  /** Containers whose action is being unloaded for another one. */
  private readonly passing = new Set<IdleMember<Job>>();

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly queues: ReadonlyMap<string, ActionQueue<Job>>,
    private readonly unassigned: UnassignedContainers,
    private readonly allocator: Allocator<Job>,
  ) {}

  /** Ends unloading: containers that leave their action later are destroyed. */
  close(): void {
    this.closing = true;
  }

  /** Takes a container without further runs from its action. `starved` is an action that waits for the memory. */
  leave(queue: ActionQueue<Job>, member: PoolMember, starved?: ActionQueue<Job>): void {
    const idle = { queue, member };
    const isOfUse = member.disposition !== 'discard' && member.container.canUnload;
    if (!isOfUse || (starved !== undefined && !canServe(this.factory, idle, starved))) this.discard(queue, member);
    else this.recycle(idle, starved ?? (queue.waiting.length > 0 ? queue : undefined));
  }

  /** Takes a long idle container from its action, for other actions of the namespace. */
  retire(queue: ActionQueue<Job>, member: PoolMember): void {
    const { unloaded, unloading } = this.unassigned;
    const isOfUse = member.container.canUnload && unloaded.hasRoom(queue.namespace, unloading.count(queue.namespace));
    if (isOfUse) this.recycle({ queue, member });
    else this.discard(queue, member);
  }

  /**
   * Destroys idle containers with a GPU beyond the number that the namespace keeps: those without an action first, then the
   * longest idle.
   */
  trim({ namespace, keepsWarm, spec }: ActionQueue<Job>): void {
    if (keepsWarm === undefined || spec.gpu === undefined) return;
    const unloaded = this.unassigned.unloaded.withGpu(namespace);
    const queues = [...this.queues.values()].filter((one) => one.namespace === namespace && one.spec.gpu !== undefined);
    // A container does not count as idle while its action's jobs wait for others of their batch.
    const idle = idleMembers(
      queues.filter(({ waiting }) => waiting.length === 0),
      Infinity,
    );
    const excess = Math.max(0, unloaded.length + idle.length - keepsWarm);
    for (const container of unloaded.slice(0, excess)) this.unassigned.unloaded.replace(container);
    for (const { queue, member } of idle.slice(0, Math.max(0, excess - unloaded.length))) this.discard(queue, member);
  }

  discard(queue: ActionQueue<Job>, member: PoolMember): void {
    queue.remove(member);
    if (member.gone) return;
    member.gone = true;
    this.unassigned.removals.remove(member.container, () => this.allocator.forget(queue));
  }

  /**
   * Unloads for `queue` a container of another action of the namespace that has idled for `minIdleMs`; whether there is one.
   */
  takeFromOther(queue: ActionQueue<Job>, minIdleMs: number): boolean {
    const found = idleMembers(this.queues.values(), this.clock.monotonicMs() - minIdleMs).find((idle) =>
      canServe(this.factory, idle, queue),
    );
    if (found !== undefined) this.recycle(found, queue);
    return found !== undefined;
  }

  /** Unloads for `queue` the longest idle container of another action that has its learned modules; whether there is one. */
  takeLoaded(queue: ActionQueue<Job>): boolean {
    const idle = [...this.loadedIdle(queue)].sort((a, b) => a.member.lastUsedMs - b.member.lastUsedMs);
    const [found] = idle;
    if (found !== undefined) this.recycle(found, queue);
    return found !== undefined;
  }

  /** Whether takeLoaded would find a container. */
  hasLoadedIdle(queue: ActionQueue<Job>): boolean {
    return this.loadedIdle(queue).next().done !== true;
  }

  private *loadedIdle(queue: ActionQueue<Job>): Generator<IdleMember<Job>> {
    for (const from of this.queues.values()) {
      if (from.waiting.length > 0 || from === queue) continue;
      for (const member of from.members) {
        const idle = { queue: from, member };
        const isIdle = member.active === 0 && member.used && hasLearned(this.factory, idle, queue);
        if (isIdle && this.unassigned.fits(member.container, queue.spec)) yield idle;
      }
    }
  }

  /** Whether another action of short runs uses a container with the learned modules of `queue`. */
  isLoadedBusy(queue: ActionQueue<Job>): boolean {
    for (const passing of this.passing) if (hasLearned(this.factory, passing, queue)) return true;
    for (const from of this.queues.values()) {
      if (from.waiting.length > 0 || (from.runMs ?? 0) > longRunMs) continue;
      for (const member of from.members)
        if (member.active > 0 && !member.retiring && hasLearned(this.factory, { queue: from, member }, queue))
          return true;
    }
    return false;
  }

  /**
   * Gives up snapshots and containers until there will be memory for another one of `queue`: unloaded ones, stem cells for cold starts,
   * containers that have idled for `minIdleMs`, other stem cells. Gives up none if all of them would not suffice. Returns
   * whether an idle container will serve the action instead.
   */
  makeRoom(queue: ActionQueue<Job>, minIdleMs: number): boolean {
    const { memory } = this.unassigned;
    const { spec } = queue;
    const lacking = memory.lackingPlaces(spec);
    if (lacking.length === 0) return this.free(queue, memory.missingMiB(spec), minIdleMs, (other) => other.memoryMiB);
    return lacking.some(({ place, missingMiB }) =>
      this.free(queue, missingMiB, minIdleMs, (other) => deviceMemoryOn(place, other)),
    );
  }

  private free(queue: ActionQueue<Job>, neededMiB: number, minIdleMs: number, memoryOf: Measure): boolean {
    if (neededMiB <= 0) return false;
    const { unloaded, stemCells, snapshots } = this.unassigned;
    const idle = idleMembers(this.queues.values(), this.clock.monotonicMs() - minIdleMs);
    const idleMiB = idle.reduce((sum, { member }) => sum + memoryOf(member.container.spec), 0);
    const waitingMiB = [snapshots, unloaded, stemCells].reduce((sum, store) => sum + store.heldMiB(memoryOf), 0);
    if (waitingMiB + idleMiB < neededMiB) return false;
    let missingMiB = neededMiB - snapshots.giveUp(neededMiB, memoryOf);
    missingMiB -= unloaded.giveUp(missingMiB, memoryOf);
    missingMiB -= stemCells.giveUp(missingMiB, 'expendable', memoryOf);
    const leaving = enoughOf(idle, missingMiB, memoryOf);
    const reusable = leaving.find((one) => canServe(this.factory, one, queue));
    if (reusable !== undefined) {
      this.recycle(reusable, queue);
      return true;
    }
    for (const { queue: from, member } of leaving) {
      missingMiB -= memoryOf(member.container.spec);
      this.discard(from, member);
    }
    stemCells.giveUp(missingMiB, 'all', memoryOf);
    return false;
  }

  /** Unloads a container's action, for `target` or else for any action of the namespace. */
  private recycle({ queue, member }: IdleMember<Job>, target?: ActionQueue<Job>): void {
    queue.remove(member);
    if (member.gone) return;
    member.gone = true;
    if (this.closing) return this.unassigned.removals.remove(member.container);
    const settle = target && this.expect(target);
    const passing = { queue, member };
    if (target !== undefined) this.passing.add(passing);
    this.unassigned.unloading.begin(member, queue.namespace, member.disposition === 'recover', (isUnloaded) => {
      settle?.();
      this.passing.delete(passing);
      if (isUnloaded) {
        const isWanted = target !== undefined && target.waiting.length > 0;
        if (isWanted && this.unassigned.resize(member.container, target.spec))
          this.allocator.adopt(target, member.container);
        else this.unassigned.unloaded.put(member.container, queue);
        this.trim(queue);
      }
      if (target !== undefined) this.allocator.grow(target);
      for (const each of [queue, target]) if (each !== undefined) this.allocator.forget(each);
      this.allocator.unblock();
    });
  }

  /**
   * Lets an action wait for a container that is being unloaded, at most for the time of a start; then it looks for a further
   * one. The returned function ends the wait.
   */
  private expect(queue: ActionQueue<Job>): () => void {
    let isExpected = true;
    queue.starting++;
    const settle = (): void => {
      if (isExpected) queue.starting--;
      isExpected = false;
      timer.cancel();
    };
    const timer = this.clock.setBackgroundTimer(Math.ceil(queue.startMs), () => {
      settle();
      this.allocator.grow(queue);
    });
    return settle;
  }
}

/** A container without a run, and its action. */
interface IdleMember<Job extends PoolJob<Job>> {
  queue: ActionQueue<Job>;
  member: PoolMember;
}

/**
 * Containers idle since `untilMs` (monotonic) or longer, in the order of eviction: first those of actions with several
 * containers, each group with the longest idle first.
 */
function idleMembers<Job extends PoolJob<Job>>(queues: Iterable<ActionQueue<Job>>, untilMs: number): IdleMember<Job>[] {
  const idle: (IdleMember<Job> & { isOnly: boolean })[] = [];
  for (const queue of queues) {
    let others = queue.members.size;
    for (const member of queue.members) {
      if (member.active > 0 || member.lastUsedMs > untilMs) continue;
      idle.push({ queue, member, isOnly: --others === 0 });
    }
  }
  return idle.sort((a, b) => Number(a.isOnly) - Number(b.isOnly) || a.member.lastUsedMs - b.member.lastUsedMs);
}

/** The first members that have `neededMiB` together. */
function enoughOf<Job extends PoolJob<Job>>(
  idle: readonly IdleMember<Job>[],
  neededMiB: number,
  memoryOf: Measure,
): IdleMember<Job>[] {
  let missingMiB = neededMiB;
  return idle.filter(({ member }) => {
    const ownMiB = memoryOf(member.container.spec);
    if (missingMiB <= 0 || ownMiB === 0) return false;
    missingMiB -= ownMiB;
    return true;
  });
}

/**
 * Whether a container of another action can serve `queue` after an unload, with all of its learned modules, and its own
 * action would be loaded again in less time than that saves.
 */
function hasLearned<Job extends PoolJob<Job>>(
  factory: ContainerFactory,
  idle: IdleMember<Job>,
  queue: ActionQueue<Job>,
): boolean {
  const { spec } = idle.member.container;
  if (idle.member.loadMs > (queue.spec.learned?.savesMs ?? 0)) return false;
  return spec.learned !== undefined && canServe(factory, idle, queue) && factory.match(spec, queue.spec) !== 'subset';
}

/** Whether a container of another action can serve `queue` after an unload. */
function canServe<Job extends PoolJob<Job>>(
  factory: ContainerFactory,
  { queue: from, member }: IdleMember<Job>,
  queue: ActionQueue<Job>,
): boolean {
  const { canUnload, spec } = member.container;
  if (!canUnload || from === queue) return false;
  if (from.namespace !== queue.namespace || from.codeOf !== queue.codeOf) return false;
  const match = factory.match(spec, queue.spec);
  // Learned imports are no condition of the action.
  return match === 'exact' || match === 'superset' || (match === 'subset' && queue.spec.learned !== undefined);
}
