// Profiling by all trials that a space has: the optimum that other searches are measured by.
import {
  keepsPart,
  latencyProfile,
  mostEfficientOf,
  ratedTrials,
  throughputProfile,
  timeOf,
  trialAt,
} from '@gpuwhisk/gpu/stages/profile/trials';
import type { Profiler } from '@gpuwhisk/gpu/stages/profile/trials';

/** Runs every batch at every share; without an SLO the smallest batch at every share. */
export const traversalProfiler: Profiler = ({ sloMs }, space, trials) => {
  const { batches, shares } = space;
  const wanted = sloMs === undefined ? batches.slice(0, 1) : batches;
  const points = wanted.flatMap((batch) => shares.map((share) => ({ batch, share })));
  const next = points.find((point) => trialAt(trials, point) === undefined);
  if (next !== undefined) return { next };
  if (sloMs !== undefined) {
    return latencyProfile(sloMs, mostEfficientOf(ratedTrials(sloMs, trials)), trials, 'all trials were run');
  }
  return throughputProfile(space, trials, (part, from, wholeMs) => {
    const rising = trials.filter(({ share }) => share >= from).sort((one, other) => one.share - other.share);
    const found = rising.find((trial) => keepsPart(trial, part, wholeMs));
    return { share: found?.share ?? 100, ms: (found && timeOf(found)) ?? wholeMs };
  });
};
