// Gaussian processes, and the expected improvement of a normal value.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each input, and inputs one for each length */
import { solveLower, whiten, type Whitened } from '../numeric/cholesky.js';

/** What is believed before anything was measured. */
export interface Prior {
  mean(input: Float64Array): number;
  /** Standard deviation, at least 0. */
  deviation(input: Float64Array): number;
}

/** How what was measured bears on what was not. */
export interface Hyperparameters {
  /** By element of an input: the distance over which values go their own way. */
  lengths: readonly number[];
  /** Standard deviation of a measurement. */
  noise: number;
}

/** Measurements, which may repeat an input. */
export interface Samples {
  inputs: readonly Float64Array[];
  values: readonly number[];
}

/** Mean and variance of a normal distribution. */
export interface Normal {
  mean: number;
  variance: number;
}

/** What is believed of the value at an input, without the noise of measuring it. */
export type Posterior = (input: Float64Array) => Normal;

/** The Matérn correlation with ν = 5/2 (Rasmussen and Williams, Gaussian Processes for Machine Learning, equation 4.17). */
export function matern52(distance: number): number {
  const scaled = Math.sqrt(5) * distance;
  return (1 + scaled + (scaled * scaled) / 3) * Math.exp(-scaled);
}

/** Conditions a Gaussian process on `samples` (Rasmussen and Williams, algorithm 2.1). */
export function posteriorOf(prior: Prior, hyper: Hyperparameters, samples: Samples): Posterior {
  const { inputs } = samples;
  const size = inputs.length;
  const deviations = Float64Array.from(inputs, (input) => prior.deviation(input));
  const { lower, values: whitened } = factored(prior, hyper, samples, deviations);
  const column = new Float64Array(size);
  return (input) => {
    const deviation = prior.deviation(input);
    for (let at = 0; at < size; at += 1) {
      column[at] = deviation * deviations[at]! * matern52(distance(input, inputs[at]!, hyper.lengths));
    }
    solveLower(lower, column);
    let mean = prior.mean(input);
    let variance = deviation * deviation;
    for (let at = 0; at < size; at += 1) {
      mean += column[at]! * whitened[at]!;
      variance -= column[at]! * column[at]!;
    }
    return { mean, variance: Math.max(0, variance) };
  };
}

/** The logarithm of the probability density of `samples` under the prior. */
export function logMarginalLikelihood(prior: Prior, hyper: Hyperparameters, samples: Samples): number {
  const deviations = Float64Array.from(samples.inputs, (input) => prior.deviation(input));
  const { fit, logDeterminant } = factored(prior, hyper, samples, deviations);
  return -(samples.inputs.length * Math.log(2 * Math.PI) + fit + logDeterminant) / 2;
}

/** The candidate under which all `tasks`, independent of each other, are likeliest; the first of several. Throws RangeError for no candidate. */
export function likeliest(
  candidates: readonly Hyperparameters[],
  tasks: readonly (Samples & { prior: Prior })[],
): Hyperparameters {
  let best: Hyperparameters | undefined;
  let bestLog = -Infinity;
  for (const candidate of candidates) {
    let log = 0;
    for (const task of tasks) log += logMarginalLikelihood(task.prior, candidate, task);
    if (best === undefined || log > bestLog) [best, bestLog] = [candidate, log];
  }
  if (best === undefined) throw new RangeError('there is no candidate to choose');
  return best;
}

/** The samples' distance from the prior mean, with their covariance divided out. */
function factored(
  prior: Prior,
  hyper: Hyperparameters,
  { inputs, values }: Samples,
  deviations: Float64Array,
): Whitened {
  const size = inputs.length;
  if (values.length !== size) throw new RangeError(`${values.length} values for ${size} inputs`);
  const covariance = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column <= row; column += 1) {
      const correlation = matern52(distance(inputs[row]!, inputs[column]!, hyper.lengths));
      const value = deviations[row]! * deviations[column]! * correlation;
      covariance[row * size + column] = covariance[column * size + row] = value;
    }
    covariance[row * size + row]! += hyper.noise * hyper.noise;
  }
  return whiten(
    covariance,
    Float64Array.from(values, (value, at) => value - prior.mean(inputs[at]!)),
  );
}

function distance(one: Float64Array, other: Float64Array, lengths: readonly number[]): number {
  let squared = 0;
  for (let at = 0; at < lengths.length; at += 1) {
    const difference = (one[at]! - other[at]!) / lengths[at]!;
    squared += difference * difference;
  }
  return Math.sqrt(squared);
}

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
