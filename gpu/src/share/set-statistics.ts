// How much a set of functions gains by running together, from paired times of its members.

/** Times alone / times together of the runs of one member of a set. */
export interface MemberRatios {
  /** How many instances of the member are in the set. */
  count: number;
  /** 1: as fast as alone. */
  ratios: readonly number[];
}

/** Σ(alone / together) of a set: its work in the unit of turns, which do 1. */
export interface SetGain {
  mean: number;
  /** Ends of the two-sided 90 % interval: each is the end of a one-sided 95 % one. */
  low: number;
  high: number;
}

/** Quantiles of Student's t at 95 %, one-sided, by degrees of freedom from 1 on; beyond the last one the normal distribution's. */
const quantiles = [
  6.314, 2.92, 2.353, 2.132, 2.015, 1.943, 1.895, 1.86, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753,
];
const normalQuantile = 1.645;
/** Relative deviation of a pair that is measured twice (KACE: median 3.8 %): fewer than that no handful of runs can show. */
const leastDeviation = 0.038;

/** The gain of a set; undefined unless each member has two runs. The deviation is taken to be the same for all members, relative to their means. */
export function gainOf(members: readonly MemberRatios[]): SetGain | undefined {
  let [mean, squares, runs] = [0, 0, 0];
  const means: { count: number; mean: number; runs: number }[] = [];
  for (const { count, ratios } of members) {
    if (ratios.length < 2) return undefined;
    const own = meanOf(ratios);
    for (const one of ratios) squares += (one / own - 1) ** 2;
    runs += ratios.length;
    mean += count * own;
    means.push({ count, mean: own, runs: ratios.length });
  }
  const freedom = runs - members.length;
  const deviation = Math.max(leastDeviation, Math.sqrt(squares / freedom));
  let variance = 0;
  for (const one of means) variance += (one.count * one.mean * deviation) ** 2 / one.runs;
  const width = (quantiles[freedom - 1] ?? normalQuantile) * Math.sqrt(variance);
  return { mean, low: mean - width, high: mean + width };
}

/** The mean; NaN of nothing. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
