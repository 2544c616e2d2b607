import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';

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
