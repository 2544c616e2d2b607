// The last launches and launch cycles of each client of kernel tokens.

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
