import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Hyperparameters, Prior } from './gaussian-process.js';
import { curvePrior, fittedHyper, pooledPrior, predictedPrior, vaguePrior } from './priors.js';
import { jobId, placeKey } from './quota-row.js';
import { defaultHyper } from './quota-search.js';
import type { QuotaJob } from './quotas.js';

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
  add(job: QuotaJob, gpuType: string, mode: DeviceMode, slowdowns: readonly number[]): string | undefined {
    if (slowdowns.length !== shareClasses.length)
      return `${slowdowns.length} slowdowns for ${shareClasses.length} classes`;
    const bad = slowdowns.find((one) => !(one >= leastSlowdown && one <= greatestSlowdown));
    if (bad !== undefined) return `a slowdown of ${bad}`;
    const key = placeKey(gpuType, mode);
    const pool = this.pools.get(key) ?? { curves: new Map<string, readonly number[]>() };
    this.pools.set(key, pool);
    const id = jobId(job);
    pool.curves.delete(id);
    pool.curves.set(id, [...slowdowns]);
    for (const oldest of pool.curves.keys()) {
      if (pool.curves.size <= maxCurves) break;
      pool.curves.delete(oldest);
    }
    delete pool.learned;
    return undefined;
  }

  /**
   * What to expect of a job: its own profile; else what a trained predictor says of its features; else what functions
   * are like in general; else that it may be anything.
   */
  priorOf(job: QuotaJob, gpuType: string, mode: DeviceMode, predictor?: SlowdownPredictor): Prior {
    const own = this.pools.get(placeKey(gpuType, mode))?.curves.get(jobId(job));
    if (own !== undefined) return curvePrior({ shares: shareClasses, slowdowns: own });
    if (predictor !== undefined && job.features !== undefined) return predictedPrior(predictor, job.features);
    return this.learned(gpuType, mode)?.prior ?? vaguePrior;
  }

  /** How curves on this kind of GPU bend, and how much measurements differ. */
  hyperOf(gpuType: string, mode: DeviceMode): Hyperparameters {
    return this.learned(gpuType, mode)?.hyper ?? defaultHyper;
  }

  private learned(gpuType: string, mode: DeviceMode): Pool['learned'] {
    const pool = this.pools.get(placeKey(gpuType, mode));
    if (pool === undefined || pool.curves.size < leastPool) return undefined;
    if (pool.learned === undefined) {
      const curves = Array.from(pool.curves.values(), (slowdowns) => ({ shares: shareClasses, slowdowns }));
      pool.learned = { prior: pooledPrior(curves), hyper: fittedHyper(curves, defaultHyper) };
    }
    return pool.learned;
  }
}
