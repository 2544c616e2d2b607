/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices stay between the first and the last point of a curve */
// Time alone at a share over the time alone on the whole device.
import { nonIncreasing } from '../data/isotonic.js';
import type { MeasuredSet } from './sets.js';

/** Measured points of a workload, by rising share, and the curve through them that never rises. */
interface Curve {
  measured: ReadonlyMap<number, number>;
  shares: readonly number[];
  stretches: readonly number[];
}

/** A time alone over that on the whole device, and whether it was interpolated. */
export interface Stretch {
  value: number;
  isMeasured: boolean;
}

/** Curves of workloads alone, by workload. */
export class Curves {
  private readonly curves = new Map<string, Curve>();

  constructor(sets: readonly MeasuredSet[]) {
    const points = new Map<string, Map<number, number[]>>();
    for (const { members } of sets)
      for (const { workload, share, stretch } of members) {
        if (stretch === undefined) continue;
        const own = points.get(workload) ?? new Map<number, number[]>();
        points.set(workload, own);
        own.set(share, [...(own.get(share) ?? []), stretch]);
      }
    for (const [workload, own] of points) {
      const measured = new Map([...own].map(([share, values]) => [share, middle(values)]));
      const shares = [...measured.keys()].sort((a, b) => a - b);
      const stretches = nonIncreasing(shares.map((share) => measured.get(share)!));
      this.curves.set(workload, { measured, shares, stretches });
    }
  }

  /**
   * The measured value where there is one, 1 on the whole device, else a straight line in logarithms between the neighbouring
   * shares. Throws RangeError for a workload that was not measured alone, and below its smallest share.
   */
  at(workload: string, share: number): Stretch {
    const curve = this.curves.get(workload);
    const known = curve?.measured.get(share);
    if (known !== undefined) return { value: known, isMeasured: true };
    if (share === 1) return { value: 1, isMeasured: true };
    const above = curve?.shares.findIndex((each) => each > share) ?? -1;
    if (curve === undefined || above <= 0)
      throw new RangeError(
        `${workload} was not measured alone at ${Math.round(100 * share)} %, nor below and above it`,
      );
    const [low, high] = [curve.shares[above - 1]!, curve.shares[above]!];
    const part = Math.log(share / low) / Math.log(high / low);
    const logs = [Math.log(curve.stretches[above - 1]!), Math.log(curve.stretches[above]!)] as const;
    return { value: Math.exp(logs[0] + part * (logs[1] - logs[0])), isMeasured: false };
  }
}

function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}
