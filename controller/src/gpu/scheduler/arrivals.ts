import type { ActivationMessage } from '@gpuwhisk/common/messages';

/** Two clocks that nobody sets drift by less between two decisions, and round by less, ms. */
const toleranceMs = 50;

/**
 * When those who wait have arrived, on the clock of a snapshot: reckoned from how long they wait, so that a clock that is
 * set makes nobody late, and the same each time, so that nobody is taken for a new arrival.
 */
export class Arrivals {
  private readonly known = new WeakMap<ActivationMessage, number>();

  /** Epoch ms. `at` and `nowMs` are the same moment, on the snapshot's clock and monotonic. */
  of({ message, arrivedMs }: { message: ActivationMessage; arrivedMs: number }, at: number, nowMs: number): number {
    const arrivedAt = at - (nowMs - arrivedMs);
    const known = this.known.get(message);
    if (known !== undefined && Math.abs(known - arrivedAt) < toleranceMs) return known;
    this.known.set(message, arrivedAt);
    return arrivedAt;
  }
}
