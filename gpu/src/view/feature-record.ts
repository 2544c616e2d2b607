import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';

/**
 * What is known of a function: figures by name, of any number, of which each predictor reads those that it knows. A name
 * that is absent was not told, which is not 0.
 */
export type FeatureRecord = Readonly<Record<string, number>>;

const workloads = new WeakMap<FeatureRecord, WorkloadFeatures>();

/**
 * The figures that FaaShare's predictor goes by. Undefined where it is not known what the function fills, or that is
 * nothing. The same object for the same record, since predictions are remembered by it.
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

/** What was measured of a function, and what was not measured as its owner declares it; undefined for neither. */
export function recordOf(
  measured: FeatureRecord | undefined,
  declared: FeatureRecord | undefined,
): FeatureRecord | undefined {
  return measured === undefined || declared === undefined ? (measured ?? declared) : { ...declared, ...measured };
}
