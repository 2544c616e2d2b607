import type { Logger } from '@gpuwhisk/common/logging';
import type { Container } from '../containers/container-factory.js';

/**
 * How an activation that loaded its code found the container: made for it, ready with a runtime that is started for one
 * action only, or ready with one that takes one action after the other.
 */
export type LoadingStart = 'cold' | 'prewarmed' | 'injected';

/** A container that belongs to one action of one namespace, and what the pool knows of it. */
export interface PoolMember {
  readonly container: Container;
  /** How its first activation will find it. */
  readonly origin: LoadingStart;
  /** How long it took to make, ms. */
  readonly createMs: number;
  /** Whether the action's code is loaded; until then only one run at a time may use it. */
  initialized: boolean;
  /** Whether it had a run. */
  used: boolean;
  /** Runs under way. */
  active: number;
  /** Takes no further runs; leaves its action when the last one ends. */
  retiring: boolean;
  /** The worst that its runs said of it. */
  disposition: Disposition;
  /** Has left its action, to be unloaded or destroyed: once. */
  gone: boolean;
  paused: boolean;
  /** Processor time of a container that waits for its first run, when it was last looked at, ms. */
  idleProcessorMs: number | undefined;
  /** Resolves once the last freeze has taken effect or failed. */
  pausing: Promise<void> | undefined;
  /** Set while it is being thawed: resolves or rejects with that. */
  resuming: Promise<void> | undefined;
  /** The part of the container's busy time that its action's queue has counted, ms. */
  countedBusyMs: number;
  /** Monotonic ms of the last end of a run. */
  lastUsedMs: number;
}

/**
 * What is to become of a container after a run: it serves on, or its action has to be unloaded because it failed, or it
 * is of no more use.
 */
export type Disposition = 'keep' | 'recover' | 'discard';

/** A container that joins an action at the moment `nowMs` of the monotonic clock. */
export function newMember(container: Container, origin: LoadingStart, createMs: number, nowMs: number): PoolMember {
  return {
    container,
    origin,
    createMs,
    initialized: false,
    used: false,
    active: 0,
    retiring: false,
    disposition: 'keep',
    gone: false,
    paused: false,
    idleProcessorMs: undefined,
    pausing: undefined,
    resuming: undefined,
    countedBusyMs: container.busyMs,
    lastUsedMs: nowMs,
  };
}

const dispositions: readonly Disposition[] = ['keep', 'recover', 'discard'];

/** The worse of two. */
export function worse(one: Disposition, other: Disposition): Disposition {
  return dispositions.indexOf(one) > dispositions.indexOf(other) ? one : other;
}

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
