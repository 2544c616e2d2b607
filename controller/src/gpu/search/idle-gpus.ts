import type { SampledPlace } from '../scheduler/gpu-policy.js';

/** For how long GPUs have idled, by what is seen of them now and then, and by work that is told of in between. */
export class IdleGpus {
  /** Monotonic ms, by UUID. */
  private readonly busyMs = new Map<string, number>();
  private places: readonly SampledPlace[] = [];

  /** Looks at all GPUs; where somebody waits for any, none idles. */
  look(places: readonly SampledPlace[], isWaiting: boolean, nowMs: number): void {
    this.places = places;
    const ids = new Set(places.map(({ gpu }) => gpu.id));
    for (const id of this.busyMs.keys()) if (!ids.has(id)) this.busyMs.delete(id);
    // One that is new here counts from now on.
    for (const { gpu, isFree } of places) {
      if (isWaiting || !isFree || !this.busyMs.has(gpu.id)) this.busyMs.set(gpu.id, nowMs);
    }
  }

  /** Work has come for these. */
  busy(gpus: readonly string[], nowMs: number): void {
    for (const id of gpus) if (this.busyMs.has(id)) this.busyMs.set(id, nowMs);
  }

  /** Those that have idled for `idleMs`. */
  since(idleMs: number, nowMs: number): SampledPlace[] {
    return this.places.filter(({ gpu }) => nowMs - (this.busyMs.get(gpu.id) ?? nowMs) >= idleMs);
  }
}
