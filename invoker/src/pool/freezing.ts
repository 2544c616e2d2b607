import type { Logger } from '@gpuwhisk/common/logging';
import type { PoolMember } from './pool-member.js';

/** Freezes an idle container. */
export function pauseMember(member: PoolMember, logger: Logger): void {
  member.paused = true;
  member.pausing = member.container.pause().catch((error: unknown) => {
    member.paused = false;
    logger.warn({ container: member.container.id, error: String(error) }, 'a container could not be paused');
  });
}

/** Thaws a frozen container; undefined if it runs already. A second caller waits for the same thaw. */
export function resumeMember(member: PoolMember): Promise<void> | undefined {
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
