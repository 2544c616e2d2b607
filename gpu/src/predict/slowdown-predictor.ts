// The interface of slowdown predictors, the features that they read, and the capacity model, which is not trained.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- rows have an element for each of `faashareFeatureNames` */

/** How much of a GPU a workload uses when it runs alone at a share of 100 %, fractions (FaaShare, table II). */
export interface WorkloadFeatures {
  /** Streaming multiprocessors that it fills; never a driver's utilisation, which counts time. */
  smUtil: number;
  /** Memory bandwidth; absent, as the next one: neither the chip nor the owner told it. */
  dramUtil?: number;
  /** Second-level cache. */
  l2Util?: number;
}

/** Values that replace figures which a workload lacks. */
export interface TypicalFeatures {
  dramUtil: number;
  l2Util: number;
}

/** Values of the capacity model: an absent figure adds no contention. */
export const noFeatures: TypicalFeatures = { dramUtil: 0, l2Util: 0 };

/** A workload beside others on one GPU. */
export interface CoLocated {
  features: WorkloadFeatures;
  /** MPS share, 0 < share ≤ 1. */
  share: number;
}

/** Predicts what sharing a GPU costs. */
export interface SlowdownPredictor {
  /**
   * Time of `one` beside `others`, each at its share, over its time alone at 100 % with the same batch. At least 1,
   * always finite; without others on the GPU, the price of the share alone.
   */
  slowdown(one: CoLocated, others: readonly CoLocated[]): number;
}

/** Names of the elements of `faashareFeatures`, in order: task, contention and configuration features of table II. */
export const faashareFeatureNames = [
  'smUtil',
  'dramUtil',
  'l2Util',
  'othersSmUtil',
  'othersDramUtil',
  'othersL2Util',
  'share',
] as const;

/**
 * The seven inputs of FaaShare's predictor (table II), in the order of `faashareFeatureNames`. What a neighbour adds
 * is its use of the whole GPU scaled down where its share cannot hold it: v·min(1, share / smUtil). A figure that a
 * workload lacks is taken from `typical`, which a learned model fills with the means of its samples.
 */
export function faashareFeatures(
  one: CoLocated,
  others: readonly CoLocated[],
  typical: TypicalFeatures = noFeatures,
): Float64Array {
  const row = new Float64Array(faashareFeatureNames.length);
  row[0] = one.features.smUtil;
  row[1] = one.features.dramUtil ?? typical.dramUtil;
  row[2] = one.features.l2Util ?? typical.l2Util;
  for (const { features, share } of others) {
    const part = features.smUtil > share ? share / features.smUtil : 1;
    row[3]! += features.smUtil * part;
    row[4]! += (features.dramUtil ?? typical.dramUtil) * part;
    row[5]! += (features.l2Util ?? typical.l2Util) * part;
  }
  row[6] = one.share;
  return row;
}

/**
 * What can be said before anything was measured: a workload that fills more of the GPU than its share takes as much
 * longer, and workloads that together ask for more of a resource than the GPU has wait for each other. Ignores what else
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

/**
 * Figures of a function by name, in any number. A predictor reads the names that it knows. An absent name means that the
 * figure is unknown, not that it is 0.
 */
export type FeatureRecord = Readonly<Record<string, number>>;

const workloads = new WeakMap<FeatureRecord, WorkloadFeatures>();

/**
 * The figures that FaaShare's predictor reads, or undefined if the record has no fill above 0. Returns the same object for
 * the same record, since predictions are cached by it.
 */
export function workloadOf(record: FeatureRecord | undefined): WorkloadFeatures | undefined {
  const { smUtil, dramUtil, l2Util } = record ?? {};
  if (record === undefined || smUtil === undefined || !(smUtil > 0)) return undefined;
  const known = workloads.get(record);
  if (known !== undefined) return known;
  const features = {
    smUtil,
    ...(dramUtil !== undefined && { dramUtil }),
    ...(l2Util !== undefined && { l2Util }),
  };
  workloads.set(record, features);
  return features;
}

/** The measured figures and, for other names, the declared ones; undefined if there are none. */
export function recordOf(
  measured: FeatureRecord | undefined,
  declared: FeatureRecord | undefined,
): FeatureRecord | undefined {
  return measured === undefined || declared === undefined ? (measured ?? declared) : { ...declared, ...measured };
}
