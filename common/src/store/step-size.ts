/** Bounds of steps, in records and ms. */
export interface StepBounds {
  least: number;
  most: number;
  /** A whole step that took less is followed by one of twice its size. */
  growsBelowMs: number;
  /** A step that took more is followed by one of half its size. */
  shrinksAboveMs: number;
}

/** The size of steps of background work: they grow with what is left to do, as far as a step stays short. */
export class StepSize {
  /** Records of the next step, at most. */
  most: number;

  constructor(private readonly bounds: StepBounds) {
    this.most = bounds.least;
  }

  /** Notes how many records the last step had, and how long it took, ms. */
  took(records: number, ms: number): void {
    const { least, most, growsBelowMs, shrinksAboveMs } = this.bounds;
    if (ms > shrinksAboveMs) this.most = Math.max(least, Math.floor(this.most / 2));
    else if (records === this.most && ms < growsBelowMs) this.most = Math.min(most, this.most * 2);
  }
}
