// Dilu's profiling (section 3.2): binary search for trainings, growth over batch and share for functions with an SLO.
import {
  efficacyOf,
  executionMs,
  failureOf,
  keepsPart,
  latencyProfile,
  mostEfficientOf,
  ratedTrials,
  throughputProfile,
  timeOf,
  tolerance,
  trialAt,
} from '../../stages/profile/trials.js';
import type { Profiler, ProfileGoal, ProfileStep, Trial, TrialSpace } from '../../stages/profile/trials.js';

/**
 * Dilu's search. At most one trial fewer than batches and shares together with an SLO; else one at the greatest share and
 * two binary searches.
 */
export const diluProfiler: Profiler = ({ sloMs }, space, trials) =>
  sloMs === undefined ? binarySearch(space, trials) : hybridGrowth(sloMs, space, trials);

/** The most trials that `diluProfiler` takes. */
export function mostDiluTrials({ sloMs }: ProfileGoal, { batches, shares }: TrialSpace): number {
  if (sloMs !== undefined) return batches.length + shares.length - 1;
  return Math.min(shares.length, 1 + 2 * Math.ceil(Math.log2(shares.length)));
}

/**
 * From the smallest batch and share on, the batch doubles after a trial within half of the SLO, and the share grows after
 * another one. The search ends at the greatest batch or share, at a trial that fails, and at a trial beyond half of the SLO
 * whose efficacy is 2 % below the best: a greater share would lower it further. A trial within half of the SLO does not end
 * it, since the next batch may gain more than the share cost.
 */
function hybridGrowth(sloMs: number, { batches, shares }: TrialSpace, trials: readonly Trial[]): ProfileStep {
  const walked: Trial[] = [];
  const end = (reason: string): ProfileStep =>
    latencyProfile(sloMs, mostEfficientOf(ratedTrials(sloMs, walked)), walked, reason);
  let [batchAt, shareAt] = [0, 0];
  for (;;) {
    const [batch, share] = [batches[batchAt], shares[shareAt]];
    if (batch === undefined) return end(`batch ${batches.at(-1)} is the greatest`);
    if (share === undefined) return end(`${shares.at(-1)} % is the greatest share`);
    const trial = trialAt(trials, { batch, share });
    if (trial === undefined) return { next: { batch, share } };
    const best = mostEfficientOf(ratedTrials(sloMs, walked));
    walked.push(trial);
    const ms = timeOf(trial);
    if (ms === undefined) return end(failureOf(trial));
    if (ms <= executionMs(sloMs)) batchAt += 1;
    else if (best !== undefined && efficacyOf(trial, ms) < best.efficacy * (1 - tolerance))
      return end(`batch ${batch} gains less throughput than the share that it needs`);
    else shareAt += 1;
  }
}

/**
 * The search for the request ends where the throughput is within 2 % of its part. The search for the limit goes on to the
 * smallest share, since throughput is flat there.
 */
function binarySearch(space: TrialSpace, trials: readonly Trial[]): ProfileStep {
  const { batches, shares } = space;
  const [batch = 1] = batches;
  return throughputProfile(space, trials, (part, from, wholeMs) => {
    let low = Math.max(0, shares.indexOf(from)) - 1;
    let high = shares.length - 1;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const point = { batch, share: shares[middle] ?? 100 };
      const trial = trialAt(trials, point);
      if (trial === undefined) return { next: point };
      const rate = wholeMs / (timeOf(trial) ?? Infinity);
      if (!keepsPart(trial, part, wholeMs)) low = middle;
      else high = middle;
      if (part < 1 && high === middle && rate <= part + tolerance) break;
    }
    const share = shares[high] ?? 100;
    return { share, ms: trialAt(trials, { batch, share })?.ms ?? wholeMs };
  });
}
