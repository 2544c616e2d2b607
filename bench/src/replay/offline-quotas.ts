import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import { predictedPrior } from '@gpuwhisk/gpu/share/priors';
import { classSpace, defaultHyper, propose, type SearchProblem } from '@gpuwhisk/gpu/share/quota-search';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import type { MeasuredPoint } from '@gpuwhisk/gpu/share/surrogate';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { CatalogueEntry } from './workloads/catalogue.js';
import { featuresOf } from './workloads/catalogue.js';

/** Sets that are searched before a replay begins, and their size. */
export interface QuotaBudget {
  sets: number;
  mostTasks: number;
}

const driverMajor = 1;

/**
 * FaaShare's offline phase (section VII-B): random sets are run at the shares that the search proposes, and a table keeps
 * what their noisy times were. What a replay meets that is in no row is answered from the nearest one, or not at all.
 */
export function offlineQuotas(
  catalogue: readonly CatalogueEntry[],
  truth: GpuTruth,
  predictor: SlowdownPredictor,
  gpuType: string,
  budget: QuotaBudget,
  random: Random,
  exploration?: Exploration,
): QuotaTable {
  const table = new QuotaTable({ predictorOf: () => predictor });
  const pick = (count: number): number => Math.floor(randomFraction(random) * count);
  for (let i = 0; i < budget.sets; i += 1) {
    const set = Array.from({ length: 2 + pick(budget.mostTasks - 1) }, () => catalogue[pick(catalogue.length)]!);
    const jobs = set.map(({ name, batch }): QuotaJob => ({ function: `/guest/${name}`, version: '0.0.1', batch }));
    const known = jobs.map((job, at) => ({ ...job, features: featuresOf(set[at]!) }));
    const points = search(set, truth, random, exploration);
    for (const point of points) table.record(known, gpuType, 'mps', point, driverMajor);
  }
  return table;
}

function search(
  set: readonly CatalogueEntry[],
  truth: GpuTruth,
  random: Random,
  exploration: Exploration | undefined,
): MeasuredPoint[] {
  const problem: SearchProblem = {
    jobs: set.map((entry) => {
      const features = featuresOf(entry);
      return { prior: predictedPrior(capacityModel, features), weight: 1, maxSlowdown: Infinity, features };
    }),
    space: classSpace,
    hyper: defaultHyper,
    ...(exploration && { exploration }),
  };
  const points: MeasuredPoint[] = [];
  for (;;) {
    const next = propose(problem, points, points.length, random);
    if (!next) return points;
    const clients = set.map(({ name }, at) => ({ workload: name, share: next.shares[at]! / 100 }));
    const slowdowns = [...truth.slowdowns(clients)].map((one) => one * Math.exp(truth.noise * normal(random)));
    points.push({ shares: next.shares, slowdowns });
  }
}
