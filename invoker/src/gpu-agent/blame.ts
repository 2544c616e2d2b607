/** Which actions have broken a GPU of late. One that did so three times within ten minutes gets none. */
export class Blame {
  /** Epoch ms of the faults of each action. */
  private readonly faults = new Map<string, number[]>();

  note(action: string, nowMs: number): void {
    this.faults.set(action, [...this.recent(action, nowMs), nowMs].slice(-maxFaults));
    if (this.faults.size <= maxActions) return;
    const oldest = this.faults.keys().next();
    if (!oldest.done) this.faults.delete(oldest.value);
  }

  /** Why the action gets no GPU now; undefined if it may have one. */
  problem(action: string, nowMs: number): string | undefined {
    const count = this.recent(action, nowMs).length;
    return count < maxFaults ? undefined : `${action} broke a GPU ${count} times within ${withinMs / 60_000} minutes`;
  }

  private recent(action: string, nowMs: number): number[] {
    return (this.faults.get(action) ?? []).filter((at) => nowMs - at < withinMs);
  }
}

const maxFaults = 3;
const withinMs = 600_000;
const maxActions = 1000;
