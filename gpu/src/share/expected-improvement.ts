import type { Normal } from './gaussian-process.js';

/** How ξ goes down from one evaluation to the next, in units of the objective's deviation (FaaShare, section VII-B). */
export interface Exploration {
  /** Of the first evaluation. */
  start: number;
  /** Of each evaluation, over that of the one before. */
  decay: number;
}

export const defaultExploration: Exploration = { start: 0.05, decay: 0.7 };

/** The exploration of evaluation `step`, counted from 0, in units of the objective's deviation. */
export function explorationAt(step: number, { start, decay } = defaultExploration): number {
  return start * decay ** step;
}

/**
 * By how much a value is expected to fall below `best` and `exploration` more: FaaShare's equations 4 and 5, turned
 * round for minimising.
 */
export function expectedImprovement({ mean, variance }: Normal, best: number, exploration: number): number {
  const deviation = Math.sqrt(variance);
  const gain = best - mean - exploration;
  if (deviation === 0) return 0;
  const z = gain / deviation;
  return Math.max(0, gain * normalCdf(z) + deviation * normalDensity(z));
}

/** The probability that a normal value is at most `bound`. */
export function probabilityAtMost({ mean, variance }: Normal, bound: number): number {
  if (bound === Infinity) return 1;
  if (variance === 0) return mean <= bound ? 1 : 0;
  return normalCdf((bound - mean) / Math.sqrt(variance));
}

function normalDensity(z: number): number {
  return Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
}

/** The standard normal distribution function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
export function normalCdf(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const upper = (series * Math.exp(-x * x)) / 2;
  return z >= 0 ? 1 - upper : upper;
}
