/** The ids that came last: so many at least, twice as many at most. */
export class RecentIds {
  /** The newest, and those before them: two sets that take turns need no removal one by one. */
  private newest = new Set<string>();
  private before = new Set<string>();

  constructor(private readonly remembered: number) {}

  has(id: string): boolean {
    return this.newest.has(id) || this.before.has(id);
  }

  add(id: string): void {
    if (this.newest.size >= this.remembered) {
      this.before = this.newest;
      this.newest = new Set();
    }
    this.newest.add(id);
  }
}
