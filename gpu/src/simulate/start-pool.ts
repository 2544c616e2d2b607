// Pre-warmed processes of a simulated GPU, which starts take one of.

/** Pools of pre-warmed processes, one a GPU or slice. What they hold of its memory is no part of what the place gives away. */
export interface StartPool {
  /** Processes of a full pool. */
  size: number;
  /** Start in a process of the pool, and in a new one where the pool is empty, ms. */
  injectMs: number;
  coldMs: number;
  /** Until the process that took the place of one is ready, ms. A pool makes one at a time. */
  refillMs: number;
}

/** The pools of a replay. */
export class StartPools {
  /** By place: when each process that is being made will be ready, ms, rising. */
  private readonly refills = new Map<string, number[]>();

  constructor(private readonly pool: StartPool) {}

  /** Takes a process for a start on a place at `now`, and says how long the start takes, ms. */
  take(place: string, now: number): number {
    const { size, injectMs, coldMs, refillMs } = this.pool;
    const coming = (this.refills.get(place) ?? []).filter((at) => at > now);
    this.refills.set(place, coming);
    if (coming.length >= size) return coldMs;
    coming.push(Math.max(now, coming.at(-1) ?? now) + refillMs);
    return injectMs;
  }
}
