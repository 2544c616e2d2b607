// Measurements of each client of kernel tokens: its last launches and launch cycles, and its solo rate.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- places run below the count that each array was made for */

/** Cycles of one batch size that the shortest is taken of. */
export const rememberedCycles = 64;
/** Batch sizes that are told apart at a time. */
const rememberedBatches = 8;

/**
 * The shortest launch cycle of every client at each batch size (Dilu, section 3.4.1: KLC). A batch size that is new
 * takes the place of the one that was added first. Allocates nothing after its creation.
 */
export class LaunchCycles {
  private readonly batches: Float64Array;
  private readonly nextBatch: Uint8Array;
  private readonly cyclesMs: Float64Array;
  private readonly counts: Uint32Array;
  private readonly shortestMs: Float64Array;

  constructor(places: number) {
    const rows = places * rememberedBatches;
    this.batches = new Float64Array(rows);
    this.nextBatch = new Uint8Array(places);
    this.cyclesMs = new Float64Array(rows * rememberedCycles);
    this.counts = new Uint32Array(rows);
    this.shortestMs = new Float64Array(rows);
  }

  clear(place: number): void {
    const first = place * rememberedBatches;
    this.batches.fill(0, first, first + rememberedBatches);
    this.counts.fill(0, first, first + rememberedBatches);
    this.nextBatch[place] = 0;
  }

  record(place: number, batch: number, lengthMs: number): void {
    const row = this.find(place, batch) ?? this.add(place, batch);
    const first = row * rememberedCycles;
    this.cyclesMs[first + (this.counts[row]! % rememberedCycles)] = lengthMs;
    this.counts[row]! += 1;
    let shortest = lengthMs;
    const known = Math.min(this.counts[row]!, rememberedCycles);
    for (let i = first; i < first + known; i += 1) shortest = Math.min(shortest, this.cyclesMs[i]!);
    this.shortestMs[row] = shortest;
  }

  /** By which part `lengthMs` is longer than the shortest of its batch size; 0 where none is known. */
  growth(place: number, batch: number, lengthMs: number): number {
    const row = this.find(place, batch);
    if (row === undefined || !(this.shortestMs[row]! > 0)) return 0;
    return Math.max(0, lengthMs / this.shortestMs[row]! - 1);
  }

  private find(place: number, batch: number): number | undefined {
    for (let row = place * rememberedBatches; row < (place + 1) * rememberedBatches; row += 1) {
      if (this.counts[row]! > 0 && this.batches[row] === batch) return row;
    }
    return undefined;
  }

  private add(place: number, batch: number): number {
    const row = place * rememberedBatches + this.nextBatch[place]!;
    this.nextBatch[place] = (this.nextBatch[place]! + 1) % rememberedBatches;
    this.batches[row] = batch;
    this.counts[row] = 0;
    return row;
  }
}

/** Periods that a client's launches are remembered for (Dilu, algorithm 2: RW). */
export const windowPeriods = 20;

/** Who has launched something lately: the last periods of every client. Allocates nothing after its creation. */
export class RateWindows {
  private readonly active: Uint8Array;
  private readonly sums: Uint8Array;
  private cursor = 0;

  constructor(private readonly places: number) {
    this.active = new Uint8Array(places * windowPeriods);
    this.sums = new Uint8Array(places);
  }

  /** Begins a period: what is recorded from now on takes the place of the oldest. */
  advance(): void {
    this.cursor = (this.cursor + 1) % windowPeriods;
  }

  record(place: number, launched: boolean): void {
    const at = this.cursor * this.places + place;
    this.sums[place]! += Number(launched) - this.active[at]!;
    this.active[at] = Number(launched);
  }

  clear(place: number): void {
    for (let period = 0; period < windowPeriods; period += 1) this.active[period * this.places + place] = 0;
    this.sums[place] = 0;
  }

  /** Whether the client has launched nothing in the window. */
  isIdle(place: number): boolean {
    return this.sums[place] === 0;
  }
}

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
