/** The sizes of messages that were stored and are not done, by rising offset. */
export class PendingBytes {
  private readonly sizes = new Map<number, number>();
  total = 0;

  add(offset: number, bytes: number): void {
    this.remove(offset);
    this.sizes.set(offset, bytes);
    this.total += bytes;
  }

  remove(offset: number): void {
    const bytes = this.sizes.get(offset);
    if (bytes === undefined) return;
    this.sizes.delete(offset);
    this.total -= bytes;
  }

  /** All below `offset` are done. */
  removeBelow(offset: number): void {
    for (const at of this.sizes.keys()) {
      if (at >= offset) return;
      this.remove(at);
    }
  }
}
