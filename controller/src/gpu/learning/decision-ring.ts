import type { DecisionRecord, RunFacts } from '@gpuwhisk/common/gpu-decisions';

/** Most characters of texts in one decision; alternatives beyond this bound are dropped. */
const mostOfOne = 16_384;
/** Estimated size of a decision or alternative without its texts, bytes. */
const fixedSize = 200;

/** Bounds of a DecisionRing. */
export interface RingBounds {
  /** Number of decisions. */
  count: number;
  /** Estimated size of the decisions, bytes. */
  bytes: number;
}

/** The last decisions, in segments that are stored separately. */
export class DecisionRing {
  private readonly decisions: (DecisionRecord | undefined)[];
  /** Positions of the last placements, by activation. */
  private readonly placed = new Map<string, number>();
  private next = 0;
  private total = 0;

  /** `onChange` is called with the number of a changed segment of `segmentSize` decisions. */
  constructor(
    private readonly bounds: RingBounds,
    private readonly segmentSize: number,
    private readonly onChange: (segment: number) => void,
  ) {
    this.decisions = new Array<DecisionRecord | undefined>(bounds.count).fill(undefined);
  }

  /** Estimated size of the kept decisions, bytes. */
  get bytes(): number {
    return this.total;
  }

  /** Adds a decision; the oldest ones are removed beyond the bounds. */
  add(decision: DecisionRecord): void {
    this.put(this.next, cut(decision));
    this.changed(this.next);
    this.next = (this.next + 1) % this.decisions.length;
    for (const place of this.dropOldest()) this.changed(place);
  }

  /**
   * Adds what was seen of a run to the decision that placed it, if that is kept. It is stored with the next decision of the
   * segment: a write for each end would double the writes.
   */
  ran(activationId: string, run: RunFacts): void {
    const place = this.placed.get(activationId);
    const decision = place === undefined ? undefined : this.decisions[place];
    if (place === undefined || decision === undefined) return;
    this.put(place, { ...decision, run });
  }

  /** The decisions, latest first. */
  latest(): DecisionRecord[] {
    const { decisions, next } = this;
    return [...decisions.slice(next), ...decisions.slice(0, next)].filter((one) => one !== undefined).reverse();
  }

  /** The decisions of a segment; null at free positions. */
  segment(number: number): (DecisionRecord | null)[] {
    const from = number * this.segmentSize;
    return this.decisions.slice(from, from + this.segmentSize).map((one) => one ?? null);
  }

  /** Restores a segment from `segment`; new decisions follow the last restored one. */
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
    const { [place]: before } = this.decisions;
    this.total -= sizeOf(before);
    if (before !== undefined && this.placed.get(before.activationId) === place) this.placed.delete(before.activationId);
    if (decision?.placement !== undefined) this.placed.set(decision.activationId, place);
    this.decisions[place] = decision;
    this.total += sizeOf(decision);
  }

  /** Returns the positions of the removed decisions. */
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

/** Estimates the size of a decision, bytes. Measuring its JSON would take longer than the decision. */
function sizeOf(decision: DecisionRecord | undefined): number {
  if (decision === undefined) return 0;
  const { activationId, action, namespace, policy, reason, placement, rejected, run } = decision;
  let size = fixedSize + activationId.length + action.length + namespace.length + policy.length + reason.length;
  for (const one of rejected) size += fixedSize + one.what.length + one.reason.length;
  for (const one of run?.beside ?? []) size += one.action.length + one.namespace.length;
  for (const name of [...(placement?.devices ?? []), ...(placement?.reclaim ?? [])]) size += name.length;
  return size;
}

/** The decision, shortened to `mostOfOne`. */
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
