import { faashareFeatures, type CoLocated, type SlowdownPredictor } from './slowdown-predictor.js';

/**
 * What can be said before anything was measured: a workload that fills more of the GPU than its share takes as much
 * longer, and whoever together ask for more than the GPU has of anything wait for each other. Ignores what else
 * neighbours do to one another, and figures that a workload lacks, so that it is low rather than high.
 */
export const capacityModel: SlowdownPredictor = {
  slowdown: (one, others) => capacitySlowdown(one, faashareFeatures(one, others)),
};

/** The same from the seven features of `one`, which are there already. */
export function capacitySlowdown(one: Pick<CoLocated, 'share'>, features: ArrayLike<number>): number {
  const [smUtil, dramUtil, l2Util] = [features[0]!, features[1]!, features[2]!];
  const part = smUtil > one.share ? one.share / smUtil : 1;
  const asked = Math.max(1, smUtil * part + features[3]!, dramUtil * part + features[4]!, l2Util * part + features[5]!);
  return Number.isFinite(asked) && part > 0 ? asked / part : 1;
}
