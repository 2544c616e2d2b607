import type { Decision } from '@gpuwhisk/common/gpu';

/** The last decisions, in segments that are stored one by one. */
export class DecisionRing {
  private readonly decisions: (Decision | undefined)[];
  private next = 0;

  /** `size` decisions at most; `onChange` is told which segment of `segmentSize` has changed. */
  constructor(
    size: number,
    private readonly segmentSize: number,
    private readonly onChange: (segment: number) => void,
  ) {
    this.decisions = new Array<Decision | undefined>(size).fill(undefined);
  }

  add(decision: Decision): void {
    this.decisions[this.next] = decision;
    this.onChange(Math.floor(this.next / this.segmentSize));
    this.next = (this.next + 1) % this.decisions.length;
  }

  /** The last first. */
  latest(): Decision[] {
    const { decisions, next } = this;
    return [...decisions.slice(next), ...decisions.slice(0, next)].filter((one) => one !== undefined).reverse();
  }

  /** What a segment holds; null where there is nothing yet. */
  segment(number: number): (Decision | null)[] {
    const from = number * this.segmentSize;
    return this.decisions.slice(from, from + this.segmentSize).map((one) => one ?? null);
  }

  /** Takes a segment as `segment` gave it; the next decision is put behind the last one of all segments. */
  restore(number: number, decisions: readonly (Decision | null)[]): void {
    const from = number * this.segmentSize;
    decisions.slice(0, this.segmentSize).forEach((decision, at) => {
      const place = from + at;
      if (decision === null || !(place < this.decisions.length)) return;
      this.decisions[place] = decision;
      const last = this.decisions.at(this.next - 1);
      if (last === undefined || decision.at >= last.at) this.next = (place + 1) % this.decisions.length;
    });
  }
}
