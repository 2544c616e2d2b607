import { posteriorOf } from './gaussian-process.js';
import type { Hyperparameters, Prior, Samples } from './gaussian-process.js';

/** A value further than so many deviations from what all others let one expect is none of the function's. */
const maxDeviations = 4;

/** Nor is one contradicted that differs by less than a factor of two: real curves have steps. Values are logarithms. */
const leastDifference = Math.log(2);

/**
 * `samples` without those that contradict the rest: the worst goes first, since it makes its neighbours look bad too;
 * a third of them at most. One that is alone is held against the prior.
 */
export function withoutOutliers(prior: Prior, hyper: Hyperparameters, samples: Samples): Samples {
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
