// Expected slowdowns of functions before their set has run together: from profiles, predictors, or nothing.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- curves and inputs are not empty, and arrays have an element for each share of a curve */
import { keepNewest } from '@gpuwhisk/common/collections';
import { kindName, shareClasses, type GpuKind } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor, WorkloadFeatures } from '../predict/slowdown-predictor.js';
import { likeliest } from './gaussian-process.js';
import type { Hyperparameters, Prior } from './gaussian-process.js';
import { inputLength } from './surrogate.js';
import { jobId } from './quota-row.js';
import { defaultHyper } from './quota-search.js';
import type { QuotaJob } from './quotas.js';

/** How much slower a function was alone at smaller shares, from a profile. */
export interface ShareCurve {
  /** Percent, rising. */
  shares: readonly number[];
  /** Time at the share over that at 100 %. */
  slowdowns: readonly number[];
}

/** What is unknown of any curve even where those in the pool agree, of the logarithm. */
const leastDeviation = 0.03;

/** By how much neighbours change what a function is like alone, of the logarithm. */
const ownDeviation = 0.15;

/**
 * What curves of other functions let one expect of a function that was not measured: at each share their mean and
 * their deviation, linear in ln share between. All curves must have the same shares; throws RangeError otherwise, or
 * for none. Neighbours make no difference to it.
 */
export function pooledPrior(curves: readonly ShareCurve[]): Prior {
  const [first] = curves;
  if (first === undefined) throw new RangeError('there is no curve to learn from');
  const logs = curves.map(({ shares, slowdowns }) => {
    const isSame = shares.length === first.shares.length && shares.every((share, at) => share === first.shares[at]);
    if (!isSame || slowdowns.length !== shares.length) throw new RangeError('curves differ in their shares');
    return slowdowns.map(Math.log);
  });
  const at = first.shares.map((share) => Math.log(share / 100));
  const means = at.map((_, column) => mean(logs.map((log) => log[column]!)));
  const deviations = at.map((_, column) => {
    const variance = mean(logs.map((log) => (log[column]! - means[column]!) ** 2));
    return Math.max(leastDeviation, Math.sqrt(variance));
  });
  return {
    mean: (input) => interpolated(at, means, input[0]!),
    deviation: (input) => interpolated(at, deviations, input[0]!),
  };
}

/** What the profile of a function alone lets one expect of it; beside others it is slower by what is unknown. */
function curvePrior({ shares, slowdowns }: ShareCurve): Prior {
  const at = shares.map((share) => Math.log(share / 100));
  const logs = slowdowns.map(Math.log);
  return { mean: (input) => interpolated(at, logs, input[0]!), deviation: () => ownDeviation };
}

/** Nothing is known: a job may be anything between untouched by a small share and slowed down in proportion. */
export const vaguePrior: Prior = {
  mean: (input) => -input[0]! / 2,
  deviation: (input) => 0.05 - input[0]! / 2,
};

/**
 * What a slowdown predictor lets one expect of a job. How far it may be off grows with what it predicts: nothing can be
 * much faster than alone.
 */
export function predictedPrior(predictor: SlowdownPredictor, features: WorkloadFeatures): Prior {
  const logPredicted = (input: Float64Array): number => {
    const [, smUtil = 0, dramUtil = 0, l2Util = 0] = input;
    const one = { features, share: Math.exp(input[0]!) };
    // The input has what the others use at their shares; so many neighbours with the whole GPU use just that.
    const count = Math.ceil(Math.max(smUtil, dramUtil, l2Util));
    // A sum of 0 means that no neighbour has the figure: the predictor uses its own typical value.
    const part = {
      smUtil: smUtil / count,
      ...(dramUtil > 0 && { dramUtil: dramUtil / count }),
      ...(l2Util > 0 && { l2Util: l2Util / count }),
    };
    const neighbours = Array.from({ length: count }, () => ({ features: part, share: 1 }));
    return Math.log(predictor.slowdown(one, neighbours));
  };
  return { mean: logPredicted, deviation: (input) => 0.1 + 0.3 * logPredicted(input) };
}

/**
 * The hyper-parameters under which the pool's curves are likeliest, each taken for a function by itself; those of
 * inputs that a curve does not have stay as in `fallback`.
 */
export function fittedHyper(curves: readonly ShareCurve[], fallback: Hyperparameters): Hyperparameters {
  const prior = pooledPrior(curves);
  const tasks = curves.map(({ shares, slowdowns }) => ({
    prior,
    inputs: shares.map((share) =>
      Float64Array.of(Math.log(share / 100), ...new Array<number>(inputLength - 1).fill(0)),
    ),
    values: slowdowns.map(Math.log),
  }));
  const candidates = [0.3, 0.5, 0.8, 1.2, 1.8, 2.7, 4].flatMap((length) =>
    [0.01, 0.02, 0.03, 0.05, 0.08].map((noise) => ({ lengths: [length, ...fallback.lengths.slice(1)], noise })),
  );
  return likeliest(candidates, tasks);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function interpolated(xs: readonly number[], ys: readonly number[], x: number): number {
  const right = xs.findIndex((one) => one >= x);
  if (right < 0) return ys.at(-1)!;
  if (right === 0) return ys[0]!;
  const part = (x - xs[right - 1]!) / (xs[right]! - xs[right - 1]!);
  return ys[right - 1]! + part * (ys[right]! - ys[right - 1]!);
}

/** Fewer curves than this say nothing of functions in general. */
const leastPool = 5;

/** Curves that are kept of one kind of GPU; then the oldest makes way. */
const maxCurves = 512;

/** No share makes anything faster than the whole GPU by more than noise; nor slower than this. */
const [leastSlowdown, greatestSlowdown] = [0.5, 1000];

interface Pool {
  /** By job, slowdowns at the share classes. */
  curves: Map<string, readonly number[]>;
  /** Worked out when it is asked for, until the pool changes. */
  learned?: { prior: Prior; hyper: Hyperparameters };
}

/**
 * What profiles found functions to be like alone at each share class (the offline phase of FaaShare's section VII-B).
 * It is where a search starts: what is believed of a set before it ran together.
 */
export class ShareProfiles {
  private readonly pools = new Map<string, Pool>();

  /**
   * Keeps a function's slowdowns at the share classes, over its time at 100 %. Gives why they are refused, or undefined.
   */
  add(job: QuotaJob, gpu: GpuKind, slowdowns: readonly number[]): string | undefined {
    if (slowdowns.length !== shareClasses.length)
      return `${slowdowns.length} slowdowns for ${shareClasses.length} classes`;
    const bad = slowdowns.find((one) => !(one >= leastSlowdown && one <= greatestSlowdown));
    if (bad !== undefined) return `a slowdown of ${bad}`;
    const key = kindName(gpu);
    const pool = this.pools.get(key) ?? { curves: new Map<string, readonly number[]>() };
    this.pools.set(key, pool);
    keepNewest(pool.curves, jobId(job), [...slowdowns], maxCurves);
    delete pool.learned;
    return undefined;
  }

  /**
   * What to expect of a job: its own profile; else what a trained predictor says of its features; else what functions
   * are like in general; else that it may be anything.
   */
  priorOf(job: QuotaJob, gpu: GpuKind, predictor?: SlowdownPredictor): Prior {
    const own = this.pools.get(kindName(gpu))?.curves.get(jobId(job));
    if (own !== undefined) return curvePrior({ shares: shareClasses, slowdowns: own });
    if (predictor !== undefined && job.features !== undefined) return predictedPrior(predictor, job.features);
    return this.learned(gpu)?.prior ?? vaguePrior;
  }

  /** How curves on this kind of GPU bend, and how much measurements differ. */
  hyperOf(gpu: GpuKind): Hyperparameters {
    return this.learned(gpu)?.hyper ?? defaultHyper;
  }

  private learned(gpu: GpuKind): Pool['learned'] {
    const pool = this.pools.get(kindName(gpu));
    if (pool === undefined || pool.curves.size < leastPool) return undefined;
    if (pool.learned === undefined) {
      const curves = Array.from(pool.curves.values(), (slowdowns) => ({ shares: shareClasses, slowdowns }));
      pool.learned = { prior: pooledPrior(curves), hyper: fittedHyper(curves, defaultHyper) };
    }
    return pool.learned;
  }
}
