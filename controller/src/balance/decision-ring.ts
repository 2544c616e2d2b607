import type { Decision } from '@gpuwhisk/common/gpu';

/** The last decisions, `size` of them at most. */
export class DecisionRing {
  private readonly decisions: Decision[] = [];
  private next = 0;

  constructor(private readonly size: number) {}

  add(decision: Decision): void {
    this.decisions[this.next] = decision;
    this.next = (this.next + 1) % this.size;
  }

  /** The last first. */
  latest(): Decision[] {
    const { decisions, next } = this;
    return [...decisions.slice(next), ...decisions.slice(0, next)].reverse();
  }
}
