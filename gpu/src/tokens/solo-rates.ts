/** Periods with launches before a rate is known. */
export const learnedAfter = 20;

const stepsPerOctave = 32;
const octaves = 48;
const buckets = stepsPerOctave * octaves;
/** At this many samples all counts are halved, so that what is old fades. */
const fadesAt = 4096;

/**
 * Learns the solo rate of clients whose profile does not give it: the 99th percentile of blocks launched in a period,
 * within 2.2 %. Periods beside an active neighbour count only until the first one alone: contention makes them an
 * underestimate. Allocates nothing after its creation.
 */
export class SoloRates {
  private readonly counts: Uint16Array;
  private readonly totals: Uint16Array;
  private readonly alone: Uint8Array;
  private readonly rates: Float64Array;

  constructor(places: number) {
    this.counts = new Uint16Array(places * buckets);
    this.totals = new Uint16Array(places);
    this.alone = new Uint8Array(places);
    this.rates = new Float64Array(places);
  }

  clear(place: number): void {
    this.counts.fill(0, place * buckets, (place + 1) * buckets);
    this.totals[place] = 0;
    this.alone[place] = 0;
    this.rates[place] = 0;
  }

  /** A period in which the client launched `blocks` > 0 and waited for nothing; `alone`: while no other client launched. */
  record(place: number, blocks: number, alone: boolean): void {
    if (!alone && this.alone[place] === 1) return;
    if (alone && this.alone[place] === 0) {
      this.clear(place);
      this.alone[place] = 1;
    }
    const bucket = Math.min(buckets - 1, Math.floor(Math.log2(blocks + 1) * stepsPerOctave));
    this.counts[place * buckets + bucket]! += 1;
    this.totals[place]! += 1;
    if (this.totals[place]! % learnedAfter === 0) this.rates[place] = this.percentile99(place);
    if (this.totals[place]! >= fadesAt) this.fade(place);
  }

  /** Blocks in a period; 0 while it is not known. */
  rateOf(place: number): number {
    return this.rates[place]!;
  }

  private percentile99(place: number): number {
    let above = this.totals[place]! * 0.01;
    let bucket = buckets - 1;
    while (bucket > 0) {
      above -= this.counts[place * buckets + bucket]!;
      if (above < 0) break;
      bucket -= 1;
    }
    return 2 ** ((bucket + 1) / stepsPerOctave) - 1;
  }

  private fade(place: number): void {
    let total = 0;
    for (let i = place * buckets; i < (place + 1) * buckets; i += 1) {
      this.counts[i]! >>= 1;
      total += this.counts[i]!;
    }
    this.totals[place] = total;
  }
}
