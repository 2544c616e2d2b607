import type { SchedulingEvent } from '@gpuwhisk/gpu/view/view';

/** Arrivals that are decided one by one; of more at once all who wait are looked at together. */
const maxArrivals = 4;

/** What has happened since a policy decided last. */
export class GpuEvents {
  private arrivals = new Set<string>();
  private other: SchedulingEvent | undefined;

  add(event: SchedulingEvent): void {
    if (event.kind === 'arrival') this.arrivals.add(event.task);
    // After several of them all who wait are looked at, whichever they were.
    else this.other = this.other === undefined ? event : { kind: 'timer' };
  }

  /**
   * What to decide about, in order, and nothing of it again: each arrival for itself, which makes no room for others; or
   * one event for which a policy looks at all who wait, those who have just come included.
   */
  take(): SchedulingEvent[] {
    const { arrivals, other } = this;
    this.arrivals = new Set();
    this.other = undefined;
    if (other !== undefined) return [other];
    if (arrivals.size === 0 || arrivals.size > maxArrivals) return [{ kind: 'timer' }];
    return [...arrivals].map((task) => ({ kind: 'arrival', task }));
  }
}
