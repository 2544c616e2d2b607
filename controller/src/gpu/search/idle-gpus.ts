// GPUs that nothing has used for a while.
import type { SampledPlace } from '../scheduler/running-places.js';

/** Tracks how long GPUs have been idle, from periodic looks and from announced work in between. */
export class IdleGpus {
  /** Time of the last use, monotonic ms, by UUID. */
  private readonly busyMs = new Map<string, number>();
  private places: readonly SampledPlace[] = [];

  /** Looks at all GPUs; while an activation waits for any GPU, none counts as idle. */
  look(places: readonly SampledPlace[], isWaiting: boolean, nowMs: number): void {
    this.places = places;
    const ids = new Set(places.map(({ id }) => id));
    for (const id of this.busyMs.keys()) if (!ids.has(id)) this.busyMs.delete(id);
    // A new GPU counts as idle from now on.
    for (const { id, isFree } of places) {
      if (isWaiting || !isFree || !this.busyMs.has(id)) this.busyMs.set(id, nowMs);
    }
  }

  /** Notes that work has arrived for these GPUs. */
  busy(gpus: readonly string[], nowMs: number): void {
    for (const id of gpus) if (this.busyMs.has(id)) this.busyMs.set(id, nowMs);
  }

  /** The places that have been idle for `idleMs`. */
  since(idleMs: number, nowMs: number): SampledPlace[] {
    return this.places.filter(({ id }) => nowMs - (this.busyMs.get(id) ?? nowMs) >= idleMs);
  }
}
