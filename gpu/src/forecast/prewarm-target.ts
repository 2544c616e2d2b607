// How many instances to have loaded for a forecast: SMORE's controller (thesis, section 3.4.2).
import type { Forecast } from './ls-lstm.js';

/**
 * The smallest c with P(Poisson(mean) ≤ c) ≥ quantile; exact within rounding, O(√mean). 0 for a mean that is not
 * positive. Throws RangeError for a quantile outside 0 to 1 exclusive.
 */
export function poissonQuantile(mean: number, quantile: number): number {
  if (!(quantile > 0 && quantile < 1)) throw new RangeError(`A quantile is between 0 and 1, not ${quantile}.`);
  if (!(mean > 0)) return 0;
  // Below this, P(Poisson(mean) ≤ c) is under 1e-20.
  let at = Math.max(0, Math.floor(mean - 10 * Math.sqrt(mean)));
  let density = Math.exp(at * Math.log(mean) - mean - lnFactorial(at));
  let sum = density;
  const last = mean + 40 * Math.sqrt(mean) + 40;
  while (sum < quantile && at < last) {
    at += 1;
    density *= mean / at;
    sum += density;
  }
  return at;
}

/** ln n!, by Stirling's series from n = 20 on (error below 1e-12). */
function lnFactorial(n: number): number {
  if (n < 20) {
    let product = 1;
    for (let factor = 2; factor <= n; factor += 1) product *= factor;
    return Math.log(product);
  }
  return n * Math.log(n) - n + Math.log(2 * Math.PI * n) / 2 + 1 / (12 * n) - 1 / (360 * n ** 3);
}

/**
 * Instances for a minute: none if there are requests with a probability of at most 1 − quantile; else the smallest
 * c ≥ 1 with P(concurrent requests ≤ c) ≥ quantile, where a minute with requests has Poisson(r̂/P(any) × runS/60)
 * at a time. `runS`: time of a run, s. Unlike C of the policies document (section 4),
 * P(Poisson(r̂ × runS / 60) ≤ c), it loads functions whose runs are short against a minute.
 */
export function instanceTarget({ requests, active }: Forecast, runS: number, quantile: number): number {
  if (active <= 1 - quantile) return 0;
  const concurrent = ((requests / active) * runS) / 60;
  // P(≤ c) = 1 − active + active × P(Poisson ≤ c).
  const inside = Math.min(1 - 1e-12, Math.max(1e-12, 1 - (1 - quantile) / active));
  return Math.max(1, poissonQuantile(concurrent, inside));
}
