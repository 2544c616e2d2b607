import type { ContainerFactory } from '../containers/container-factory.js';
import type { ActionQueue } from './action-queue.js';
import type { Measure } from './memory-budget.js';
import type { PoolMember } from './pool-member.js';

/** A container without a run, and its action. */
export interface IdleMember {
  queue: ActionQueue;
  member: PoolMember;
}

/**
 * Containers that idle since `untilMs` (monotonic) or longer, in the order in which they make room: first those of actions
 * that have several, the longest idle first.
 */
export function idleMembers(queues: Iterable<ActionQueue>, untilMs: number): IdleMember[] {
  const idle: (IdleMember & { isOnly: boolean })[] = [];
  for (const queue of queues) {
    let others = queue.members.size;
    for (const member of queue.members) {
      if (member.active > 0 || member.lastUsedMs > untilMs) continue;
      idle.push({ queue, member, isOnly: --others === 0 });
    }
  }
  return idle.sort((a, b) => Number(a.isOnly) - Number(b.isOnly) || a.member.lastUsedMs - b.member.lastUsedMs);
}

/** The members that give up `neededMiB` together, from the first on. */
export function enoughOf(idle: readonly IdleMember[], neededMiB: number, memoryOf: Measure): IdleMember[] {
  let missingMiB = neededMiB;
  return idle.filter(({ member }) => {
    const ownMiB = memoryOf(member.container.spec);
    if (missingMiB <= 0 || ownMiB === 0) return false;
    missingMiB -= ownMiB;
    return true;
  });
}

/** Whether a container of another action can, unloaded, serve `queue` as one that is made for it. */
export function canServe(factory: ContainerFactory, { queue: from, member }: IdleMember, queue: ActionQueue): boolean {
  const { canUnload, spec } = member.container;
  if (!canUnload || from === queue) return false;
  if (from.namespace !== queue.namespace || from.codeOf !== queue.codeOf) return false;
  return factory.match(spec, queue.spec) === 'exact';
}
