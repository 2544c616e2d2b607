// Implementations of the stage `place` that only baselines name.
import { hashOf } from '@gpuwhisk/gpu/numeric/hash';
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
