// How long actions take in a replay, and what happens later in it.

/** How long actions take until they have come about, ms. A launch takes what its function's start does. */
export interface ActionTimes {
  /** Until an instance has its new share. */
  reshareMs: number;
  /** Until a device that is empty has its new slices. */
  cutMs: number;
  /** Until a node that is taken runs functions. */
  acquireMs: number;
}

/**
 * A share moves within two periods of kernel tokens; a device is cut in 2 s (PROTEAN, section 4.4); a machine of a cloud boots
 * in 2 minutes.
 */
export const actionTimes: ActionTimes = { reshareMs: 10, cutMs: 2000, acquireMs: 120_000 };

/** What happens later, in no particular order. Times in ms of the replay. */
export class Timers {
  /** A provider has answered, or a machine has come, got its notice or gone, since this was set to false. */
  hasMachineNews = false;
  private timers: { at: number; act: () => unknown; isMachine: boolean }[] = [];

  /** Does something at a time; `isMachine`: it is no reason for a replay to go on. */
  add(at: number, act: () => unknown, isMachine = false): void {
    if (at < Infinity) this.timers.push({ at, act, isMachine });
  }

  /** When the next thing of a kind happens; Infinity: never. */
  next(ofMachines: boolean): number {
    return this.timers.reduce(
      (least, { at, isMachine }) => (isMachine === ofMachines ? Math.min(least, at) : least),
      Infinity,
    );
  }

  /** Does what is due; whether there was anything. */
  settle(now: number): boolean {
    const due = this.timers.filter(({ at }) => at <= now);
    if (due.length > 0) this.timers = this.timers.filter(({ at }) => at > now);
    for (const { act, isMachine } of due) {
      act();
      this.hasMachineNews ||= isMachine;
    }
    return due.length > 0;
  }
}
