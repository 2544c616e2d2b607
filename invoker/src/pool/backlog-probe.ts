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
export type Advice = 'keep' | 'add' | 'drop';

/** What an action's containers have done so far. */
export interface Progress {
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
