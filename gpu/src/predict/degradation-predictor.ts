// What degradations are predicted for and learned from: how much slower the members of a place become together.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { MemberKind, PairBasis } from './pair-degradation.js';
import type { FeatureRecord } from './slowdown-predictor.js';

/** A process on a place: a workload (training that is not ours), or an instance of a function. */
export interface Member {
  /** Tells the members of one place apart. */
  id: string;
  kind: MemberKind;
  /**
   * M of the paper: the name under which pairs are learned, with version and batch where these matter. Equal names have
   * equal features.
   */
  model: string;
  /** Known figures by name (`degradation-features.ts`); absent: none. */
  features?: FeatureRecord;
}

/** What shares a place: a device in a mode, or a slice of one. */
export interface SharedPlace extends GpuKind {
  members: readonly Member[];
}

/**
 * Source of a pair's D, best first: features of both sides (`all`, `static` or `measured`), the mean of the samples (a side has no
 * features), the capacity model (no pair model), or a default (nothing is known).
 */
export type DegradationBasis = PairBasis | 'capacity' | 'default';

/** All bases, the weakest last. */
export const degradationBases: readonly DegradationBasis[] = [
  'all',
  'static',
  'measured',
  'mean',
  'capacity',
  'default',
];

/** A term of equation 3.4 or 3.5. */
export interface DegradationTerm {
  /** Id of the neighbour. */
  from: string;
  /** D of the two alone together: a fraction ≥ 0. */
  pair: number;
  /** γ, α or β: from 0 to 4. */
  weight: number;
  basis: DegradationBasis;
}

/** Predicted degradation of a member. */
export interface MemberDegradation {
  id: string;
  /**
   * D = slowdown − 1, a fraction ≥ 0 that may exceed 1: the sum of weight · pair over the terms (equations 3.4 and 3.5).
   * 0 without neighbours.
   */
  degradation: number;
  /** The weakest basis of its terms; absent without neighbours. */
  basis?: DegradationBasis;
  /** One for each neighbour, in the order of the members. */
  terms: readonly DegradationTerm[];
}

/** Measured degradation of a member. */
export interface MeasuredDegradation {
  id: string;
  /** Slowdown − 1, a fraction; a workload's rate alone over its rate together, less 1. */
  degradation: number;
}

/** What an observation was compared with. */
export interface ObservedDegradation {
  id: string;
  /** Absent if the observation was refused. */
  predicted?: number;
  /** As it was used: at least 0. */
  measured?: number;
  /** Why nothing was learned from it. */
  refused?: string;
}

/** A pair whose measurements depart from its predictions. */
export interface PairDrift extends GpuKind {
  victimKind: MemberKind;
  neighbourKind: MemberKind;
  /** Names of their models. */
  victim: string;
  neighbour: string;
  /** `worse`: measured above predicted. `better`: below. */
  direction: 'worse' | 'better';
  /** Observations of the window that depart in this direction, of how many. */
  departed: number;
  observed: number;
  /**
   * Means of the window: D of the victim with all its neighbours, as predicted and as measured, and by how much measured
   * exceeds predicted.
   */
  meanPredicted: number;
  meanMeasured: number;
  meanExcess: number;
}
