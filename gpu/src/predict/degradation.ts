// Degradations of pairs on one type of GPU, as placement asks for them, and what answers.
import type { Member } from './degradation-predictor.js';
import { capacityModel, workloadOf } from './slowdown-predictor.js';
import type { CoLocated, FeatureRecord, SlowdownPredictor, WorkloadFeatures } from './slowdown-predictor.js';

/** A workload or a function on a device. */
export interface SetMember {
  kind: Member['kind'];
  /** The name that its pairs are known by: that of a workload, or a function's. */
  name: string;
  /** All that is known of it, by name; absent: nothing. */
  record?: FeatureRecord;
  /** Fraction of the SMs that it is held to, 0 < share ≤ 1. */
  share: number;
}

/** Predicts how much slower workloads and functions get beside each other on one type of GPU in one mode. */
export interface DegradationModel {
  /**
   * The part of the degradation D = T_together / T_alone − 1 of `victim` that `neighbour` causes, where the victim has
   * `neighbours` neighbours in all: γ·D, α·D or β·D of SMORE's equations 3.4 and 3.5 (thesis). At least 0, always finite.
   * The degradation of a member is the sum over its neighbours.
   */
  term(victim: SetMember, neighbour: SetMember, neighbours: number): number;
}

/** Assumed of what nothing is known of: it uses all of the GPU, so that nothing is put beside a workload by guess. */
const unknown: WorkloadFeatures = { smUtil: 1 };

/**
 * Degradations of pairs as a predictor of slowdowns says them, relative to the time alone at the same share. A slowdown
 * that is no number is taken from the capacity model.
 */
export function bySlowdowns(predictor: SlowdownPredictor): DegradationModel {
  const slowdownOf = (one: CoLocated, others: readonly CoLocated[]): number => {
    const slowdown = predictor.slowdown(one, others);
    return Number.isFinite(slowdown) ? Math.max(1, slowdown) : capacityModel.slowdown(one, others);
  };
  const located = ({ record, share }: SetMember): CoLocated => ({ features: workloadOf(record) ?? unknown, share });
  return {
    term(victim, neighbour) {
      const one = located(victim);
      return Math.max(0, slowdownOf(one, [located(neighbour)]) / slowdownOf(one, []) - 1);
    },
  };
}

/** A member of a set for SMORE's predictor; `at`: its place in the set. */
export function asMember({ kind, name, record }: SetMember, at: number): Member {
  return { id: `${at}`, kind, model: name, ...(record && { features: record }) };
}

/** A degradation of a rate, 1 − together / alone (fraction 0–1), as D; Infinity where nothing is left of the rate. */
export function ofTime(degradation: number): number {
  return degradation < 1 ? degradation / (1 - degradation) : Infinity;
}
