// The surrogate of a set's slowdowns: a Gaussian process for each job, without outliers.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each job of a set, or for each measured point */
import { faashareFeatures } from '../predict/slowdown-predictor.js';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { Allotment } from './quota-search.js';
import { posteriorOf } from './gaussian-process.js';
import type { Hyperparameters, Normal, Posterior, Prior, Samples } from './gaussian-process.js';

/** A job as the search sees it. */
export interface SearchJob {
  /** Of the logarithm of its slowdown; inputs are those of `inputOf`. */
  prior: Prior;
  /** Of its slowdown in the sum that is minimised. */
  weight: number;
  /** That its budget allows; Infinity where it has none. */
  maxSlowdown: number;
  /** Absent: what it does to its neighbours is left out. */
  features?: WorkloadFeatures;
}

/** A set that ran with these shares, and how much slower than alone each job was. */
export interface MeasuredPoint {
  /** Percent, by job. */
  shares: Allotment;
  slowdowns: readonly number[];
}

/** Logarithm of the own share; use of SMs, memory bandwidth and L2 by the others at theirs (FaaShare, table II). */
export const inputLength = 4;

const nothing: WorkloadFeatures = { smUtil: 0, dramUtil: 0, l2Util: 0 };

/** What the slowdown of job `at` depends on when all have `shares`. */
export function inputOf(jobs: readonly Pick<SearchJob, 'features'>[], shares: Allotment, at: number): Float64Array {
  const coLocated = jobs.map(({ features = nothing }, job) => ({ features, share: shares[job]! / 100 }));
  const others = coLocated.filter((_, job) => job !== at);
  const ofOthers = faashareFeatures(coLocated[at]!, others).subarray(3, 6);
  return Float64Array.of(Math.log(shares[at]! / 100), ...ofOthers);
}

/** What is believed of a set's slowdowns. */
export interface Surrogate {
  /** Of the logarithm of job `at`'s slowdown. */
  logSlowdown(shares: Allotment, at: number): Normal;
  /** Of the weighted sum of the slowdowns. */
  objective(shares: Allotment): Normal;
  /** Measurements that contradict the others so much that they are left out. */
  doubted: ReadonlySet<MeasuredPoint>;
}

/** One Gaussian process for each job, on the logarithm of its slowdown; what is the same is worked out once. */
export function surrogateOf(
  jobs: readonly SearchJob[],
  hyper: Hyperparameters,
  points: readonly MeasuredPoint[],
): Surrogate {
  const doubted = new Set<MeasuredPoint>();
  const posteriors = jobs.map((job, at) => jobPosterior(jobs, at, hyper, points, doubted));
  const contended = jobs.some(({ features }) => features !== undefined);
  const known = jobs.map(() => new Map<string | number, Normal>());
  const logSlowdown = (shares: Allotment, at: number): Normal => {
    // Without features, what the others have makes no difference.
    const key = contended ? shares.join() : shares[at]!;
    const before = known[at]!.get(key);
    if (before !== undefined) return before;
    const normal = posteriors[at]!(inputOf(jobs, shares, at));
    known[at]!.set(key, normal);
    return normal;
  };
  return {
    doubted,
    logSlowdown,
    objective(shares) {
      let mean = 0;
      let variance = 0;
      for (const [at, { weight }] of jobs.entries()) {
        const slowdown = exponential(logSlowdown(shares, at));
        mean += weight * slowdown.mean;
        variance += weight * weight * slowdown.variance;
      }
      return { mean, variance };
    },
  };
}

function jobPosterior(
  jobs: readonly SearchJob[],
  at: number,
  hyper: Hyperparameters,
  points: readonly MeasuredPoint[],
  doubted: Set<MeasuredPoint>,
): Posterior {
  const { prior } = jobs[at]!;
  const inputs = points.map(({ shares }) => inputOf(jobs, shares, at));
  const values = points.map(({ slowdowns }) => Math.log(slowdowns[at]!));
  const believed = withoutOutliers(prior, hyper, { inputs, values });
  points.forEach((point, index) => {
    if (!believed.inputs.includes(inputs[index]!)) doubted.add(point);
  });
  return posteriorOf(prior, hyper, believed);
}

/** Mean and variance of the exponential of a normal value, kept finite. */
function exponential({ mean, variance }: Normal): Normal {
  const bounded = Math.min(variance, 4);
  const expected = Math.exp(Math.min(mean + bounded / 2, 20));
  return { mean: expected, variance: expected * expected * Math.expm1(bounded) };
}

/** A value further than so many deviations from what all others let one expect is none of the function's. */
const maxDeviations = 4;

/** Nor is one contradicted that differs by less than a factor of two: real curves have steps. Values are logarithms. */
const leastDifference = Math.log(2);

/**
 * `samples` without those that contradict the rest: the worst goes first, since it makes its neighbours look bad too;
 * a third of them at most. One that is alone is held against the prior.
 */
function withoutOutliers(prior: Prior, hyper: Hyperparameters, samples: Samples): Samples {
  let rest = samples;
  for (let removed = 0; removed < Math.ceil(samples.inputs.length / 3); removed += 1) {
    const deviations = rest.inputs.map((_, at) => contradiction(prior, hyper, rest, at));
    const worst = deviations.indexOf(Math.max(...deviations));
    if (worst < 0 || deviations[worst]! <= maxDeviations) break;
    rest = without(rest, worst);
  }
  return rest;
}

/** By how many deviations of its prediction from the others a value lies off. */
function contradiction(prior: Prior, hyper: Hyperparameters, samples: Samples, at: number): number {
  const { mean, variance } = posteriorOf(prior, hyper, without(samples, at))(samples.inputs[at]!);
  const difference = Math.abs(samples.values[at]! - mean);
  return difference < leastDifference ? 0 : difference / Math.hypot(Math.sqrt(variance), hyper.noise);
}

function without({ inputs, values }: Samples, at: number): Samples {
  return { inputs: inputs.toSpliced(at, 1), values: values.toSpliced(at, 1) };
}
