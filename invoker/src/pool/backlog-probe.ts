/** How long a backlog is watched before and after a container is added, ms. */
const windowMs = 250;
/** What a container must add to the throughput for another one to be tried. */
const worthwhileGain = 1.05;
/** How long the number of containers that was found good stays, ms. */
const settledMs = 10_000;

/**
 * Finds by trial how many containers serve an action best whose queue does not empty although each job waits only
 * shortly: one is added at a time, as long as the throughput rises.
 */
export class BacklogProbe {
  private sinceMs: number | undefined;
  private endedBefore = 0;
  private bestPerMs = 0;
  private settled = false;

  /** The queue is empty: what was measured holds no longer. */
  reset(): void {
    this.sinceMs = undefined;
    this.bestPerMs = 0;
    this.settled = false;
  }

  /** Whether a container should be added now. `ended` counts the runs that ended so far. */
  shouldAdd(nowMs: number, ended: number): boolean {
    if (this.sinceMs === undefined) {
      this.begin(nowMs, ended);
      return false;
    }
    const elapsedMs = nowMs - this.sinceMs;
    if (this.settled) {
      if (elapsedMs < settledMs) return false;
      this.reset();
      this.begin(nowMs, ended);
      return false;
    }
    if (elapsedMs < windowMs) return false;
    const perMs = (ended - this.endedBefore) / elapsedMs;
    this.begin(nowMs, ended);
    if (perMs < this.bestPerMs * worthwhileGain) {
      this.settled = true;
      return false;
    }
    this.bestPerMs = perMs;
    return true;
  }

  private begin(nowMs: number, ended: number): void {
    this.sinceMs = nowMs;
    this.endedBefore = ended;
  }
}
