import type { Logger } from '@gpuwhisk/common/logging';
import type { Container } from '../containers/container-factory.js';

/**
 * State of the container at a load of code: `cold` was made for the activation, `prewarmed` was ready with a runtime for one
 * action only, `injected` was ready with a runtime that can unload.
 */
export type LoadingStart = 'cold' | 'prewarmed' | 'injected';

/** A container that belongs to one action of one namespace, with its state in the pool. */
export interface PoolMember {
  readonly container: Container;
  /** State for the record of the first activation. */
  readonly origin: LoadingStart;
  /** Time of its creation, as a duration in ms. */
  readonly createMs: number;
  /** Whether the action's code is loaded; until then only one run at a time may use it. */
  initialized: boolean;
  /** Time of the load of its action's code, ms; 0 before. */
  loadMs: number;
  /** Whether the container had a run. */
  used: boolean;
  /** Number of runs under way. */
  active: number;
  /** Whether the container takes no further runs and leaves its action after the last one. */
  retiring: boolean;
  /** The worst disposition of its runs. */
  disposition: Disposition;
  /** Whether the container has left its action, to be unloaded or destroyed. */
  gone: boolean;
  paused: boolean;
  /** Processor time at the last check of a container that waits for its first run, ms. */
  idleProcessorMs: number | undefined;
  /** Resolves once the last freeze has taken effect or failed. */
  pausing: Promise<void> | undefined;
  /** Set during a thaw; resolves or rejects with it. */
  resuming: Promise<void> | undefined;
  /** The part of the container's busy time that its action's queue has counted, ms. */
  countedBusyMs: number;
  /** End of the last run, monotonic ms. */
  lastUsedMs: number;
}

/**
 * Use of a container after a run: `keep` serves on, `recover` has to unload its action because the run failed, `discard`
 * must not be used again.
 */
export type Disposition = 'keep' | 'recover' | 'discard';

/** A container that joins an action at `nowMs` (monotonic). */
export function newMember(container: Container, origin: LoadingStart, createMs: number, nowMs: number): PoolMember {
  return {
    container,
    origin,
    createMs,
    initialized: false,
    loadMs: 0,
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

/** The worse of two dispositions. */
export function worse(one: Disposition, other: Disposition): Disposition {
  return dispositions.indexOf(one) > dispositions.indexOf(other) ? one : other;
}

/** Processor time between two checks from which on a container counts as working, ms. */
const worksFromMs = 20;

/**
 * Freezes an idle container, so that it does not work between its runs; called every second. A container that was readied
 * ahead and does not work is not frozen until its first run, which must start at once: thawing on busy processors takes
 * several scheduler turns.
 */
export function restMember(member: PoolMember, logger: Logger): void {
  if (member.paused) return;
  if (!waitsForFirstRun(member)) return pauseMember(member, logger);
  const lastMs = member.idleProcessorMs;
  void worksOn(member, lastMs).then((works) => {
    // A run may have begun meanwhile.
    if (works && waitsForFirstRun(member) && !member.paused && !member.gone) pauseMember(member, logger);
  });
}

function waitsForFirstRun(member: PoolMember): boolean {
  return member.initialized && !member.used && member.active === 0;
}

/** Whether the container has worked since its processor time was `lastMs`; true also if the time is not known. */
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

/** Thaws a frozen container; undefined if it is not frozen. Concurrent callers share one thaw. */
export function resumeMember(member: PoolMember): Promise<void> | undefined {
  if (member.paused) {
    member.paused = false;
    // The thaw waits for a pending freeze, which would otherwise take effect during the run.
    const paused = member.pausing ?? Promise.resolve();
    member.resuming = paused
      .then(() => member.container.resume())
      .finally(() => {
        member.resuming = undefined;
      });
  }
  return member.resuming;
}
