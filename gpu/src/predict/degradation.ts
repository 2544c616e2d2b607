// Degradations of a whole set on one type of GPU, as placement asks for them, and what answers.
import type { DegradationPredictor, Member } from './degradation-predictor.js';
import type { ModelKey } from './slowdown-model.js';
import { capacityModel, workloadOf } from './slowdown-predictor.js';
import type { CoLocated, FeatureRecord, SlowdownPredictor, WorkloadFeatures } from './slowdown-predictor.js';

/** A workload or a function on a device. */
export interface SetMember {
  /** The name that its pairs are known by: that of a workload, or a function's with its version. */
  name: string;
  /** All that is known of it, by name; absent: nothing. */
  record?: FeatureRecord;
  /** Fraction of the SMs that it is held to, 0 < share ≤ 1. */
  share: number;
}

/** What is together on a device. */
export interface DeviceSet {
  workloads: readonly SetMember[];
  /** One entry for each instance that runs. */
  functions: readonly SetMember[];
}

/** Predicts how much slower workloads and functions get beside each other on one type of GPU in one mode. */
export interface DegradationModel {
  /**
   * D = T_together / T_alone − 1 (SMORE, thesis equations 3.4 and 3.5) of each workload, then of each function, in their
   * order: at least 0, always finite.
   */
  degradations(set: DeviceSet): Float64Array;
}

/** Assumed of what nothing is known of: it uses all of the GPU, so that nothing is put beside a workload by guess. */
const unknown: WorkloadFeatures = { smUtil: 1 };

/**
 * Degradations as a predictor of slowdowns says them, relative to the time alone at the same share. A slowdown that is no
 * number is taken from the capacity model.
 */
export function bySlowdowns(predictor: SlowdownPredictor): DegradationModel {
  const slowdownOf = (one: CoLocated, others: readonly CoLocated[]): number => {
    const slowdown = predictor.slowdown(one, others);
    return Number.isFinite(slowdown) ? Math.max(1, slowdown) : capacityModel.slowdown(one, others);
  };
  return {
    degradations({ workloads, functions }) {
      const all = [...workloads, ...functions].map(({ record, share }): CoLocated => ({
        features: workloadOf(record) ?? unknown,
        share,
      }));
      return Float64Array.from(all, (one, at) => {
        if (all.length === 1) return 0;
        return Math.max(0, slowdownOf(one, all.toSpliced(at, 1)) / slowdownOf(one, []) - 1);
      });
    },
  };
}

/** Degradations as SMORE's predictor says them for one type of GPU in one mode. */
export function byPredictor(predictor: Pick<DegradationPredictor, 'predict'>, key: ModelKey): DegradationModel {
  return {
    degradations({ workloads, functions }) {
      const members = [...workloads.map(asMember('workload')), ...functions.map(asMember('function'))];
      return Float64Array.from(predictor.predict({ ...key, members }), ({ degradation }) => degradation);
    },
  };
}

/** A member of a set for SMORE's predictor. */
export function asMember(kind: Member['kind']): (one: SetMember, at: number) => Member {
  return ({ name, record }, at) => ({ id: `${kind} ${at}`, kind, model: name, ...(record && { features: record }) });
}

/** A degradation of a time (D) as the same degradation of a rate, 1 − together / alone, fraction 0–1. */
export function ofRate(degradation: number): number {
  return degradation / (1 + degradation);
}

/** A degradation of a rate, fraction 0–1, as D; Infinity where nothing is left of the rate. */
export function ofTime(degradation: number): number {
  return degradation < 1 ? degradation / (1 - degradation) : Infinity;
}
