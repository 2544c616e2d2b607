import type { DecisionRecord } from '@gpuwhisk/common/gpu';

/** Characters of texts that one decision keeps, at most; alternatives beyond them are left out. */
const mostOfOne = 16_384;
/** Estimated size of a decision, or an alternative, besides its texts, bytes. */
const fixedSize = 200;

/** Bounds of a DecisionRing. */
export interface RingBounds {
  /** Decisions. */
  count: number;
  /** Their estimated size, bytes. */
  bytes: number;
}

/** The last decisions, in segments that are stored one by one. */
export class DecisionRing {
  private readonly decisions: (DecisionRecord | undefined)[];
  private next = 0;
  private total = 0;

  /** `onChange` is told which segment of `segmentSize` has changed. */
  constructor(
    private readonly bounds: RingBounds,
    private readonly segmentSize: number,
    private readonly onChange: (segment: number) => void,
  ) {
    this.decisions = new Array<DecisionRecord | undefined>(bounds.count).fill(undefined);
  }

  /** Estimated size of the decisions that are kept, bytes. */
  get bytes(): number {
    return this.total;
  }

  /** Keeps a decision; the oldest ones go while there are too many, or they are too large. */
  add(decision: DecisionRecord): void {
    this.put(this.next, cut(decision));
    this.changed(this.next);
    this.next = (this.next + 1) % this.decisions.length;
    for (const place of this.dropOldest()) this.changed(place);
  }

  /** The last first. */
  latest(): DecisionRecord[] {
    const { decisions, next } = this;
    return [...decisions.slice(next), ...decisions.slice(0, next)].filter((one) => one !== undefined).reverse();
  }

  /** The decisions of a segment; null where there is none yet. */
  segment(number: number): (DecisionRecord | null)[] {
    const from = number * this.segmentSize;
    return this.decisions.slice(from, from + this.segmentSize).map((one) => one ?? null);
  }

  /** Takes a segment as `segment` gave it; the next decision is put behind the last one of all segments. */
  restore(number: number, decisions: readonly (DecisionRecord | null)[]): void {
    const from = number * this.segmentSize;
    decisions.slice(0, this.segmentSize).forEach((decision, at) => {
      const place = from + at;
      if (decision === null || !(place < this.decisions.length)) return;
      this.put(place, cut(decision));
      const last = this.decisions.at(this.next - 1);
      if (last === undefined || decision.at >= last.at) this.next = (place + 1) % this.decisions.length;
    });
    this.dropOldest();
  }

  private changed(place: number): void {
    this.onChange(Math.floor(place / this.segmentSize));
  }

  private put(place: number, decision: DecisionRecord | undefined): void {
    this.total -= sizeOf(this.decisions[place]);
    this.decisions[place] = decision;
    this.total += sizeOf(decision);
  }

  /** Gives the places of the decisions that went. */
  private dropOldest(): number[] {
    const gone: number[] = [];
    for (let passed = 0; this.total > this.bounds.bytes && passed < this.decisions.length; passed += 1) {
      const place = (this.next + passed) % this.decisions.length;
      if (this.decisions[place] === undefined) continue;
      this.put(place, undefined);
      gone.push(place);
    }
    return gone;
  }
}

/** An estimate: writing JSON to measure it would take longer than the decision. */
function sizeOf(decision: DecisionRecord | undefined): number {
  if (decision === undefined) return 0;
  const { activationId, action, namespace, policy, reason, placement, rejected } = decision;
  let size = fixedSize + activationId.length + action.length + namespace.length + policy.length + reason.length;
  for (const one of rejected) size += fixedSize + one.what.length + one.reason.length;
  for (const name of [...(placement?.devices ?? []), ...(placement?.reclaim ?? [])]) size += name.length;
  return size;
}

/** A decision within `mostOfOne`. */
function cut(decision: DecisionRecord): DecisionRecord {
  if (sizeOf(decision) <= mostOfOne) return decision;
  const reason = decision.reason.slice(0, mostOfOne / 4);
  const rejected: DecisionRecord['rejected'] = [];
  let left = mostOfOne / 2;
  for (const one of decision.rejected) {
    left -= fixedSize + one.what.length + one.reason.length;
    if (left < 0) break;
    rejected.push(one);
  }
  return { ...decision, reason, rejected };
}
