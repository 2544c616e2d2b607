// Marks of places where more degradation is measured than was predicted (SMORE, thesis section 4.4).

/** By how much a measured degradation (D) is above the predicted one to count against a place. */
const margin = 0.05;
/** A place is marked when so many of its last `window` runs were above. */
const most = 10;
const window = 20;
/** Runs in a row that were not above, after which a mark is cleared. */
const clearing = 20;

/** The last runs on a place. */
interface Marked {
  /** Whether each of the last `window` runs was above, the oldest first. */
  above: boolean[];
  isRisky: boolean;
  /** Runs since the last one that was above. */
  good: number;
}

/** By place. */
export type SavedMarks = readonly (readonly [string, Marked])[];

/** Places that are high-risk, from what was measured there against what was predicted. */
export class RiskMarks {
  private places = new Map<string, Marked>();
  private marked: ReadonlySet<string> = new Set();

  /** Ids of the high-risk places. */
  get risky(): ReadonlySet<string> {
    return this.marked;
  }

  /** A run on a place, with both degradations (D). */
  observe(place: string, measured: number, predicted: number): void {
    if (!Number.isFinite(measured) || !Number.isFinite(predicted)) return;
    const isAbove = measured > predicted + margin;
    const known = this.places.get(place) ?? { above: [], isRisky: false, good: 0 };
    known.above.push(isAbove);
    if (known.above.length > window) known.above.shift();
    known.good = isAbove ? 0 : known.good + 1;
    if (known.good >= clearing) known.isRisky = false;
    else if (known.above.filter(Boolean).length >= most) known.isRisky = true;
    this.places.set(place, known);
    if (known.isRisky !== this.marked.has(place)) this.mark();
  }

  /** Forgets places that are not there any more. */
  keepOnly(isThere: (place: string) => boolean): void {
    for (const place of this.places.keys()) if (!isThere(place)) this.places.delete(place);
    this.mark();
  }

  /** The state, for `restore`. */
  saved(): SavedMarks {
    return Array.from(this.places, ([place, one]) => [place, { ...one, above: [...one.above] }] as const);
  }

  /** Takes the state of another one. */
  restore(places: SavedMarks): void {
    this.places = new Map(places.map(([place, one]) => [place, { ...one, above: [...one.above] }]));
    this.mark();
  }

  private mark(): void {
    this.marked = new Set([...this.places].filter(([, { isRisky }]) => isRisky).map(([place]) => place));
  }
}
