/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices of workloads, features and parameters are made together with their arrays */
// T1: contention by pressure. Each workload has a demand of its own, a sensitivity to others and a pressure on them.
import type { Features } from './features.js';
import { minimise } from './minimise.js';
import { overlapOf } from './sets.js';
import type { Member, Mode, Side } from './sets.js';

/** T1 of one source on one GPU type in one mode. */
export interface PressureModel {
  /** Pressure of a workload on others; of one that was not fitted by its features, or the source's typical one. */
  pressureOf(workload: string): number;
  /**
   * Time of `own` beside others over its time alone at its share. `pressures`: of the others, in their order; `overlap`: of the
   * quotas, 0 to 1.
   */
  contention(own: Member, others: readonly Member[], pressures: readonly number[], overlap: number): number;
  /** Parameters of the form; logarithms are bounded to ±`bound` by bound·tanh(value / bound). */
  readonly parameters: PressureParameters;
}

/** The logarithm of a workload's demand, sensitivity or pressure, linear in its features. */
export interface Linear {
  intercept: number;
  weights: readonly number[];
}

export interface PressureParameters {
  /** The power p. */
  sharpness: number;
  bound: number;
  demand: Linear;
  sensitivity: Linear;
  pressure: Linear;
  /** By how much a fitted workload's logarithms differ from what its features say: of demand, sensitivity, pressure. */
  deviationOf(workload: string): readonly number[];
}

/** A figure each of demand, sensitivity and pressure. */
export type Kinds = readonly [demand: number, sensitivity: number, pressure: number];

/** What a fit takes for likely beforehand. */
export interface Prior {
  /** Penalties on the deviations of a workload. */
  stiffnessOf(workload: string): Kinds;
  /** Weights of each feature, from which the fit starts and deviates at a penalty. */
  weights: Kinds;
}

/** Strength of the penalties: on a workload's own deviation from what its features say, and on the weights of features. */
const penalty = { own: 0.05, feature: 4 };
const loose: Kinds = [penalty.own, penalty.own, penalty.own];
const noPrior: Prior = { stiffnessOf: () => loose, weights: [0, 0, 0] };
const steps = 200;
/** Logarithms of demand, sensitivity and pressure stay within ±this. */
const bound = 5;
/** Residuals of the logarithm above this count linearly. */
const huber = 0.5;

/** Parameters that all workloads share, at the start of the vector, with their typical values. */
const shared = { trafficLog: -2, demandByShare: 0.1, sensitivityByShare: 0, sharpnessLog: 1 };
const sharedStart = Object.values(shared);
const sharedCount = sharedStart.length;
/** Logarithms of demand, sensitivity and pressure of a typical workload. */
const typical = [0, -0.3, -0.3] as const;
const kinds = typical.length;

/** Vector: the shared parameters, for each kind an intercept and the weights of the features, for each workload three deviations. */
interface Layout {
  width: number;
  workloads: ReadonlyMap<string, number>;
}

const weightsAt = (kind: number, { width }: Layout): number => sharedCount + kind * (width + 1);

const bounded = (value: number): number => bound * Math.tanh(value / bound);

/** Logarithms of demand, sensitivity and pressure before their bound. A workload that was not fitted has those of its features. */
function logsOf(key: string, at: Float64Array, layout: Layout, features: Features): number[] {
  const vector = features.vectors.get(key);
  const own = layout.workloads.get(key);
  return typical.map((start, kind) => {
    const from = weightsAt(kind, layout);
    let sum = start + at[from]! + (own === undefined ? 0 : at[own + kind]!);
    for (let i = 0; vector !== undefined && i < layout.width; i += 1) sum += at[from + 1 + i]! * vector[i]!;
    return sum;
  });
}

/** A process beside others, as the model sees it. */
interface Beside {
  /** Minus the logarithm of the share. */
  narrow: number;
  overlap: number;
  /** Of the others: speed alone at their share over that on the whole device. */
  activities: readonly number[];
}

/** Derivatives of the logarithm of a contention. */
interface Derivatives {
  demand: number;
  sensitivity: number;
  pressures: Float64Array;
  shared: Float64Array;
}

const noDerivatives = (others: number): Derivatives => ({
  demand: 0,
  sensitivity: 0,
  pressures: new Float64Array(others),
  shared: new Float64Array(sharedCount),
});

/**
 * The logarithm of a contention, and its derivatives by the logarithms of the demand d, the sensitivity u and the others'
 * pressures v, and by the shared parameters. The contention is ((1 + x^p) / (1 + d^p))^(1/p) with x = d + u·Σ w·v: 1 where
 * nothing is beside, and proportional to x where the demands are beyond the device. w is 1 for quotas that overlap wholly,
 * and a fraction of the neighbour's activity for disjoint ones, which share caches and memory only.
 */
function logContention(
  demandLog: number,
  sensitivityLog: number,
  pressures: ArrayLike<number>,
  { narrow, overlap, activities }: Beside,
  at: Float64Array,
  into: Derivatives,
): number {
  const d = Math.exp(demandLog + at[1]! * narrow);
  const u = Math.exp(sensitivityLog + at[2]! * narrow);
  const p = 1 + Math.exp(at[3]!);
  const traffic = (1 - overlap) * Math.exp(at[0]!);
  let sum = 0;
  let apart = 0;
  for (let i = 0; i < activities.length; i += 1) {
    const throughMemory = traffic * activities[i]! * pressures[i]!;
    sum += overlap * pressures[i]! + throughMemory;
    apart += throughMemory;
  }
  const x = d + u * sum;
  const [logX, logD] = [Math.log(x), Math.log(d)];
  const [partX, partD] = [logistic(p * logX), logistic(p * logD)];
  const value = (softplus(p * logX) - softplus(p * logD)) / p;
  const byX = partX / x;
  into.demand = d * byX - partD;
  into.sensitivity = u * sum * byX;
  for (let i = 0; i < activities.length; i += 1)
    into.pressures[i] = u * byX * (overlap + traffic * activities[i]!) * pressures[i]!;
  into.shared[0] = u * byX * apart;
  into.shared[1] = into.demand * narrow;
  into.shared[2] = into.sensitivity * narrow;
  into.shared[3] = ((partX * logX - partD * logD - value) / p) * (p - 1);
  return value;
}

const softplus = (value: number): number => (value > 30 ? value : Math.log1p(Math.exp(value)));
const logistic = (value: number): number => 1 / (1 + Math.exp(-value));

/** Speed of a process alone at its share over that on the whole device; its share where the time was not measured. */
const activityOf = ({ share, stretch }: Member): number => (stretch === undefined ? share : Math.min(1, 1 / stretch));

/** Weights of mean 1. Classes by size and overlap count by the root of their number, so that disjoint pairs do not outvote the rest. */
function weightsOf(sides: readonly Side[], overlaps: readonly number[]): number[] {
  const names = sides.map(({ set }, i) => `${set.members.length} ${overlaps[i]! > 0.5}`);
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const raw = names.map((name) => 1 / Math.sqrt(counts.get(name)!));
  const mean = raw.reduce((sum, weight) => sum + weight, 0) / raw.length;
  return raw.map((weight) => weight / mean);
}

/**
 * Fits T1 to the sides of one source on one GPU type in one mode. The fit minimises Huber's loss of the logarithm of the
 * contention, with penalties on deviations and weights. It is bounded, draws nothing, and takes sets of all sizes. Throws
 * RangeError for no sides.
 */
export function fitPressure(sides: readonly Side[], mode: Mode, features: Features, prior = noPrior): PressureModel {
  const [first] = sides;
  if (first === undefined) throw new RangeError('a fit needs measured sets of two or more');
  const keys = [...new Set(sides.flatMap(({ set }) => set.members.map(({ workload }) => workload)))].sort();
  const width = features.names.get(first.set.source)?.length ?? 0;
  const start = sharedCount + kinds * (width + 1);
  const layout: Layout = { width, workloads: new Map(keys.map((key, i) => [key, start + kinds * i])) };
  const indexOf = new Map(keys.map((key, i) => [key, i]));
  const vectors = keys.map((key) => features.vectors.get(key));
  const stiffness = keys.map((key) => prior.stiffnessOf(key));
  const rows = sides.map(({ set, own, others }) => ({
    own: indexOf.get(own.workload)!,
    others: others.map(({ workload }) => indexOf.get(workload)!),
    narrow: -Math.log(own.share),
    overlap: overlapOf(
      mode,
      set.members.map(({ share }) => share),
    ),
    activities: others.map(activityOf),
    target: Math.log(own.contention),
  }));
  const weights = weightsOf(
    sides,
    rows.map(({ overlap }) => overlap),
  );
  const most = rows.reduce((count, { others }) => Math.max(count, others.length), 0);
  const into = noDerivatives(most);
  const pressures = new Float64Array(most);

  /** The loss of the measured sides; the slopes by demand, sensitivity and pressure go into `slopes`, by workload and kind. */
  const lossOf = (
    at: Float64Array,
    logs: readonly number[][],
    slopes: Float64Array,
    gradient: Float64Array,
  ): number => {
    let loss = 0;
    const pressureOf = logs.map((three) => Math.exp(three[2]!));
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i]!;
      const own = logs[row.own]!;
      for (let j = 0; j < row.others.length; j += 1) pressures[j] = pressureOf[row.others[j]!]!;
      const residual = logContention(own[0]!, own[1]!, pressures, row, at, into) - row.target;
      const size = Math.abs(residual);
      loss += weights[i]! * (size <= huber ? (residual * residual) / 2 : huber * (size - huber / 2));
      const push = weights[i]! * Math.max(-huber, Math.min(huber, residual));
      slopes[kinds * row.own]! += push * into.demand;
      slopes[kinds * row.own + 1]! += push * into.sensitivity;
      for (let j = 0; j < row.others.length; j += 1) slopes[kinds * row.others[j]! + 2]! += push * into.pressures[j]!;
      for (let j = 0; j < sharedCount; j += 1) gradient[j]! += push * into.shared[j]!;
    }
    return loss;
  };

  const begin = new Float64Array(start + kinds * keys.length);
  begin.set(sharedStart);
  for (let kind = 0; kind < kinds; kind += 1)
    begin.fill(prior.weights[kind]!, weightsAt(kind, layout) + 1, weightsAt(kind, layout) + 1 + width);
  const fitted = minimise(begin, steps, (at, gradient) => {
    const raw = keys.map((key) => logsOf(key, at, layout, features));
    const slopes = new Float64Array(kinds * keys.length);
    let loss = lossOf(
      at,
      raw.map((three) => three.map(bounded)),
      slopes,
      gradient,
    );
    const penalise = (place: number, strength: number, from = 0): void => {
      gradient[place]! += strength * (at[place]! - from);
      loss += (strength * (at[place]! - from) ** 2) / 2;
    };
    for (let i = 0; i < keys.length; i += 1) {
      for (let kind = 0; kind < kinds; kind += 1) {
        const slope = slopes[kinds * i + kind]! * (1 - Math.tanh(raw[i]![kind]! / bound) ** 2);
        const from = weightsAt(kind, layout);
        gradient[from]! += slope;
        for (let j = 0; j < width; j += 1) gradient[from + 1 + j]! += slope * (vectors[i]?.[j] ?? 0);
        const own = start + kinds * i + kind;
        gradient[own]! += slope;
        penalise(own, stiffness[i]![kind]!);
      }
    }
    for (let kind = 0; kind < kinds; kind += 1)
      for (let j = 1; j <= width; j += 1) penalise(weightsAt(kind, layout) + j, penalty.feature, prior.weights[kind]);
    for (let j = 0; j < sharedCount; j += 1) penalise(j, penalty.feature, sharedStart[j]);
    return loss;
  });

  const boundedLogs = (key: string): number[] => logsOf(key, fitted, layout, features).map(bounded);
  const linear = (kind: number): Linear => {
    const from = weightsAt(kind, layout);
    return { intercept: typical[kind]! + fitted[from]!, weights: [...fitted.subarray(from + 1, from + 1 + width)] };
  };
  return {
    parameters: {
      ...{ sharpness: 1 + Math.exp(fitted[3]!), bound },
      ...{ demand: linear(0), sensitivity: linear(1), pressure: linear(2) },
      deviationOf(workload) {
        const from = layout.workloads.get(workload);
        return typical.map((_, kind) => (from === undefined ? 0 : fitted[from + kind]!));
      },
    },
    pressureOf: (workload) => Math.exp(boundedLogs(workload)[2]!),
    contention(own, others, pressures, overlap) {
      const [demandLog, sensitivityLog] = boundedLogs(own.workload) as [number, number];
      const beside = { narrow: -Math.log(own.share), overlap, activities: others.map(activityOf) };
      return Math.exp(
        logContention(demandLog, sensitivityLog, pressures, beside, fitted, noDerivatives(others.length)),
      );
    },
  };
}
