/** The sizes of messages that were stored and are not done, by offset. */
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

  /** Those at offsets that `isDone` says so of are done. */
  removeWhere(isDone: (offset: number) => boolean): void {
    for (const at of this.sizes.keys()) if (isDone(at)) this.remove(at);
  }
}
