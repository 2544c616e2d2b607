/** How much of a GPU a workload uses when it runs alone at a share of 100 %, fractions (FaaShare, table II). */
export interface WorkloadFeatures {
  /** Streaming multiprocessors. */
  smUtil: number;
  /** Memory bandwidth. */
  dramUtil: number;
  /** Second-level cache. */
  l2Util: number;
}

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
   * always finite; what holds for nobody else on the GPU is the price of the share alone.
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
 * is its use of the whole GPU scaled down where its share cannot hold it: v·min(1, share / smUtil).
 */
export function faashareFeatures(one: CoLocated, others: readonly CoLocated[]): Float64Array {
  const row = new Float64Array(faashareFeatureNames.length);
  row[0] = one.features.smUtil;
  row[1] = one.features.dramUtil;
  row[2] = one.features.l2Util;
  for (const { features, share } of others) {
    const part = features.smUtil > share ? share / features.smUtil : 1;
    row[3]! += features.smUtil * part;
    row[4]! += features.dramUtil * part;
    row[5]! += features.l2Util * part;
  }
  row[6] = one.share;
  return row;
}
