/** Memory that processes share. */
export interface SharedMemory {
  /** Which: processes that name the same count it once. */
  of: string;
  miB: number;
  /** Whether it stays after the last of these processes. */
  stays: boolean;
}

/** Memory × time of processes, with memory that several of them share. */
export class MemoryMeter {
  private readonly held = new Map<string, { ownMiB: number; shared: SharedMemory }>();
  private readonly sharers = new Map<string, number>();
  private presentMiB = 0;
  private sum = 0;
  private sinceMs = 0;

  constructor(private readonly nowMs: () => number) {}

  /** A process has so much memory of its own from now on, and shares some. */
  hold(id: string, ownMiB: number, shared: SharedMemory): void {
    const before = this.held.get(id);
    this.advance();
    this.held.set(id, { ownMiB, shared });
    this.presentMiB += ownMiB;
    const count = this.sharers.get(shared.of) ?? 0;
    if (count === 0) this.presentMiB += shared.miB;
    this.sharers.set(shared.of, count + 1);
    if (before !== undefined) this.leave(before);
  }

  /** A process has ended. */
  drop(id: string): void {
    const held = this.held.get(id);
    if (held === undefined) return;
    this.advance();
    this.held.delete(id);
    this.leave(held);
  }

  /** Memory × time so far, MiB × ms. */
  mibMs(): number {
    this.advance();
    return this.sum;
  }

  private leave({ ownMiB, shared }: { ownMiB: number; shared: SharedMemory }): void {
    this.presentMiB -= ownMiB;
    const left = (this.sharers.get(shared.of) ?? 0) - 1;
    if (left > 0 || shared.stays) this.sharers.set(shared.of, Math.max(left, 1));
    else {
      this.sharers.delete(shared.of);
      this.presentMiB -= shared.miB;
    }
  }

  private advance(): void {
    const nowMs = this.nowMs();
    this.sum += this.presentMiB * (nowMs - this.sinceMs);
    this.sinceMs = nowMs;
  }
}
