// For how long others used the GPU beside a run.
import type { GpuGrant } from '../containers/container-factory.js';
import { placesOf } from '../pool/memory-budget.js';

/** A run under way. */
interface Use {
  container: string;
  places: readonly string[];
  /** When it began, and until when `besideMs` is counted, monotonic ms. */
  beganMs: number;
  countedMs: number;
  /** For how long other containers had runs on its devices or its slice, ms. */
  besideMs: number;
}

/** Runs under way on each device or slice. Other requests in a run's container are no others to it. */
export class DeviceUse {
  private readonly uses = new Map<string, Use>();
  /** By device or slice: a change there is counted by the runs there only. */
  private readonly byPlace = new Map<string, Set<Use>>();

  /** A run begins in a container, at `nowMs` of the monotonic clock. */
  began(activationId: string, container: string, grant: GpuGrant, nowMs: number): void {
    this.ended(activationId, nowMs);
    const places = placesOf(grant);
    const use = { container, places, beganMs: nowMs, countedMs: nowMs, besideMs: 0 };
    this.count(places, nowMs);
    this.uses.set(activationId, use);
    for (const place of places) {
      const there = this.byPlace.get(place);
      if (there === undefined) this.byPlace.set(place, new Set([use]));
      else there.add(use);
    }
  }

  /** A run has ended; nothing happens if it is not known. */
  ended(activationId: string, nowMs: number): void {
    const use = this.uses.get(activationId);
    if (use === undefined) return;
    this.count(use.places, nowMs);
    this.uses.delete(activationId);
    for (const place of use.places) {
      const there = this.byPlace.get(place);
      there?.delete(use);
      if (there?.size === 0) this.byPlace.delete(place);
    }
  }

  /** Where and since when a run is under way, and for how long others had runs beside it so far, ms; undefined if it is not known. */
  of(activationId: string, nowMs: number): Readonly<Pick<Use, 'places' | 'beganMs' | 'besideMs'>> | undefined {
    const use = this.uses.get(activationId);
    if (use !== undefined) this.countOne(use, nowMs);
    return use;
  }

  /** Counts the time until now of all runs on these places, which are about to change. */
  private count(places: readonly string[], nowMs: number): void {
    for (const place of places) for (const use of this.byPlace.get(place) ?? []) this.countOne(use, nowMs);
  }

  private countOne(use: Use, nowMs: number): void {
    if (this.hasOthers(use)) use.besideMs += nowMs - use.countedMs;
    use.countedMs = nowMs;
  }

  private hasOthers({ container, places }: Use): boolean {
    for (const place of places) {
      for (const other of this.byPlace.get(place) ?? []) if (other.container !== container) return true;
    }
    return false;
  }
}
