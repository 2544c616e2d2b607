/** Small numbers, each held by one sandbox at a time: its user id and its address come from it. */
export class Slots {
  private readonly free: number[] = [];
  private next: number;

  /** Slots from `first` to `count - 1`. */
  constructor(
    first: number,
    private readonly count: number,
  ) {
    this.next = first;
  }

  /** A free slot; undefined if all are held. Those never used come first, so that a number rests before its reuse. */
  take(): number | undefined {
    return this.next < this.count ? this.next++ : this.free.shift();
  }

  release(slot: number): void {
    this.free.push(slot);
  }
}
