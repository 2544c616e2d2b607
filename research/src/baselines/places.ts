// Implementations of the stage `place` that only baselines name.
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
import { computeSlices, computeSlicesOf } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { Scores } from '@gpuwhisk/gpu/stages/place/place';

/**
 * An empty place first; then for a task with an SLO the place whose resident has the smallest share, and for others the place that
 * grants the largest one (TGS, Wu and others, NSDI 2023).
 */
export const mostGiven: Scores =
  () =>
  ({ sloMs }, { residents: [first] }, { share }) => {
    if (first === undefined) return 0;
    return sloMs === undefined ? 2 - share : first.share;
  };

/** Any one, at random: a hash of task and GPU, so that a repeated decision is the same. */
export const atRandom: Scores =
  () =>
  ({ id }, { account }) =>
    hashOf(`${id} ${account.id}`) / 2 ** 32;

/** Where the fewest run; of these the largest part of a GPU, which is the fastest one of a type. */
export const largestFree: Scores =
  () =>
  (_, { account: { busy, place } }) =>
    busy - partOf(place.slice?.profile) / 2;

/** Part of a GPU's compute slices that a MIG profile has; 1 for a GPU that is whole, 0 where the profile is not known. */
function partOf(profile: string | undefined): number {
  if (profile === undefined) return 1;
  const slices = computeSlicesOf(profile);
  return Number.isNaN(slices) ? 0 : slices / computeSlices;
}
