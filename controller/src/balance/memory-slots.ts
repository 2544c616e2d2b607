/** What an activation takes of an invoker. */
export interface SlotNeed {
  /** `ns/pkg/name`. */
  action: string;
  memoryMiB: number;
  /** Activations of the action that share a container. */
  concurrency: number;
}

/** The memory of one invoker that this controller may give out. */
export class MemorySlots {
  private takenMiB = 0;
  private readonly running = new Map<string, number>();

  /** Takes the memory; false if there is not enough below `limitMiB`. */
  tryTake(need: SlotNeed, limitMiB: number): boolean {
    if (this.takenMiB + this.newMiB(need) > limitMiB) return false;
    this.take(need);
    return true;
  }

  /** Takes the memory, whether it is there or not. */
  take(need: SlotNeed): void {
    this.takenMiB += this.newMiB(need);
    this.running.set(keyOf(need), this.count(need) + 1);
  }

  giveBack(need: SlotNeed): void {
    const left = this.count(need) - 1;
    if (left > 0) this.running.set(keyOf(need), left);
    else this.running.delete(keyOf(need));
    if (left % need.concurrency === 0) this.takenMiB -= need.memoryMiB;
  }

  /** Nothing where a container of the action has room. */
  private newMiB(need: SlotNeed): number {
    return this.count(need) % need.concurrency === 0 ? need.memoryMiB : 0;
  }

  private count(need: SlotNeed): number {
    return this.running.get(keyOf(need)) ?? 0;
  }
}

function keyOf({ action, memoryMiB, concurrency }: SlotNeed): string {
  return `${memoryMiB} ${concurrency} ${action}`;
}
