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
