import type { Logger } from '@gpuwhisk/common/logging';
import type { PoolMember } from './pool-member.js';

/** Processor time between two looks from which on a container is taken to work, ms. */
const worksFromMs = 20;

/**
 * For a container that idles, every second: freezes it, so that it does not work unpaid. One that was readied ahead and
 * does nothing stays as it is until its first run, which must start at once: where processors are busy, thawing takes
 * several turns on them.
 */
export function restMember(member: PoolMember, logger: Logger): void {
  if (member.paused) return;
  if (!waitsForFirstRun(member)) return pauseMember(member, logger);
  const lastMs = member.idleProcessorMs;
  void worksOn(member, lastMs).then((works) => {
    // A run may have come meanwhile.
    if (works && waitsForFirstRun(member) && !member.paused && !member.gone) pauseMember(member, logger);
  });
}

function waitsForFirstRun(member: PoolMember): boolean {
  return member.initialized && !member.used && member.active === 0;
}

/** Whether the container has used a processor since it had used it for `lastMs`, or this cannot be told. */
async function worksOn(member: PoolMember, lastMs: number | undefined): Promise<boolean> {
  const nowMs = await member.container.processorMs();
  member.idleProcessorMs = nowMs;
  return nowMs === undefined || (lastMs !== undefined && nowMs - lastMs >= worksFromMs);
}

function pauseMember(member: PoolMember, logger: Logger): void {
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
