/** Offsets `from` ≤ x < `to`. */
interface Range {
  from: number;
  to: number;
}

/** A set of offsets as ranges in rising order, which neither overlap nor touch. */
export class OffsetRanges {
  private readonly ranges: Range[] = [];
  private total = 0;

  /** How many offsets there are. */
  get count(): number {
    return this.total;
  }

  has(offset: number): boolean {
    const range = this.ranges[this.indexFrom(offset)];
    return range !== undefined && range.from <= offset;
  }

  /** Adds the offsets `from` ≤ x < `to`. */
  add(from: number, to: number): void {
    if (to <= from) return;
    // Those that touch it become part of it.
    const first = this.indexFrom(from - 1);
    let last = first;
    let range = { from, to };
    for (let next = this.ranges[last]; next !== undefined && next.from <= to; next = this.ranges[++last]) {
      range = { from: Math.min(range.from, next.from), to: Math.max(range.to, next.to) };
      this.total -= next.to - next.from;
    }
    this.ranges.splice(first, last - first, range);
    this.total += range.to - range.from;
  }

  /** Removes and gives back the end of the range that begins at `offset`; `offset` itself if none does. */
  takeFrom(offset: number): number {
    const [first] = this.ranges;
    if (first === undefined || first.from > offset) return offset;
    this.ranges.shift();
    this.total -= first.to - first.from;
    return Math.max(first.to, offset);
  }

  forEach(use: (from: number, to: number) => void): void {
    for (const { from, to } of this.ranges) use(from, to);
  }

  /** As text of at most `maxLength` characters, offsets relative to `base`; ranges that find no room are left out. */
  encode(base: number, maxLength: number): string {
    let text = '';
    for (const { from, to } of this.ranges) {
      const next = `${text === '' ? '' : ','}${from - base}${to - from > 1 ? `-${to - 1 - base}` : ''}`;
      if (text.length + next.length > maxLength) break;
      text += next;
    }
    return text;
  }

  /** Reads what encode has written. Undefined if it is something else. */
  static decode(text: string, base: number): OffsetRanges | undefined {
    const ranges = new OffsetRanges();
    if (text === '') return ranges;
    for (const part of text.split(',')) {
      const match = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(part);
      if (!match) return undefined;
      const from = Number(match[1]);
      ranges.add(base + from, base + Number(match[2] ?? from) + 1);
    }
    return ranges;
  }

  /** The index of the first range that ends behind `offset`. */
  private indexFrom(offset: number): number {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.ranges[middle] as Range).to > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
