// GPUlet's profiling (Choi and others, ATC 2022), as the 16 trials that Dilu's table 2 counts for it.
import {
  keepsPart,
  latencyProfile,
  ratedTrials,
  throughputProfile,
  timeOf,
  trialAt,
} from '@gpuwhisk/gpu/stages/profile/trials';
import type { Profiler, RatedTrial } from '@gpuwhisk/gpu/stages/profile/trials';

/** Parts that two of which make a whole GPU, percent, and the number of batches. */
const gpuletShares = [20, 50, 80, 100];
const mostBatches = 4;

/**
 * A grid of four shares and four batches, and the knee of the throughput that each share affords within the SLO. Neither
 * paper states the grid: the shares are those that complement each other on a GPU.
 */
export const gpuletProfiler: Profiler = ({ sloMs }, space, trials) => {
  const shares = [...new Set(gpuletShares.map((share) => nearest(space.shares, share)))];
  const batches = sloMs === undefined ? space.batches.slice(0, 1) : spread(space.batches, mostBatches);
  const points = batches.flatMap((batch) => shares.map((share) => ({ batch, share })));
  const next = points.find((point) => trialAt(trials, point) === undefined);
  if (next !== undefined) return { next };
  const own = points.flatMap((point) => trialAt(trials, point) ?? []);
  if (sloMs !== undefined)
    return latencyProfile(sloMs, kneeOf(ratedTrials(sloMs, own)), own, 'the knee of four shares');
  return throughputProfile({ batches, shares }, own, (part, from, wholeMs) => {
    const found = own.find((trial) => trial.share >= from && keepsPart(trial, part, wholeMs));
    return { share: found?.share ?? 100, ms: (found && timeOf(found)) ?? wholeMs };
  });
};

/** The share whose throughput is most above the line from nothing to that of the greatest share, and its best batch. */
function kneeOf(rated: readonly RatedTrial[]): RatedTrial | undefined {
  const rateOf = ({ batch, ms }: RatedTrial): number => batch / ms;
  const shares = [...new Set(rated.map(({ share }) => share))].sort((one, other) => one - other);
  const afforded = shares.flatMap((share) =>
    rated
      .filter((one) => one.share === share)
      .sort((one, other) => rateOf(other) - rateOf(one))
      .slice(0, 1),
  );
  const whole = afforded.at(-1);
  if (whole === undefined) return undefined;
  const above = (one: RatedTrial): number => rateOf(one) / rateOf(whole) - one.share / whole.share;
  return afforded.toSorted((one, other) => above(other) - above(one))[0];
}

function nearest(from: readonly number[], to: number): number {
  return from.toSorted((one, other) => Math.abs(one - to) - Math.abs(other - to))[0] ?? to;
}

/** At most `count` of the values, evenly spread, the first and the last among them. */
function spread(values: readonly number[], count: number): number[] {
  if (values.length <= count) return [...values];
  const step = (values.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, at) => values[Math.round(at * step)] ?? 1);
}
