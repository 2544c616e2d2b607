import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { CoLocated, SlowdownPredictor, WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import { predictedPrior } from '@gpuwhisk/gpu/share/priors';
import { classSpace, defaultHyper, propose, type SearchProblem } from '@gpuwhisk/gpu/share/quota-search';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import type { MeasuredPoint } from '@gpuwhisk/gpu/share/surrogate';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { functionPrefix } from '@gpuwhisk/bench/replay/jobs';
import type { Profile } from '@gpuwhisk/bench/replay/jobs';
import { featuresOf } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** Budget of runs before a replay, from which predictors learn. */
export interface ProfilingBudget {
  /** Timed runs; FaaShare's own set has 1000 (section V). */
  runs: number;
  /** Maximum of tasks that run beside each other. */
  mostTasks: number;
}

/**
 * Features as one profile run measures them: each times a log-normal factor of standard deviation `noise`, at most 1.
 * No repeated profiles of utilisations are at hand, so that `noise` is that of run times, the median of the measured
 * deviations (`GpuTruth.noise`).
 */
export function measuredFeatures(entry: CatalogueEntry, noise: number, random: Random): WorkloadFeatures {
  const { smUtil, dramUtil = 0, l2Util = 0 } = featuresOf(entry);
  const measured = (value: number): number => Math.min(1, value * Math.exp(noise * normal(random)));
  return { smUtil: measured(smUtil), dramUtil: measured(dramUtil), l2Util: measured(l2Util) };
}

/** One noisy solo run for each workload. */
export function profileAlone(
  catalogue: readonly CatalogueEntry[],
  truth: GpuTruth,
  random: Random,
): Map<string, Profile> {
  return new Map(
    catalogue.map((entry) => [
      entry.name,
      {
        soloFactor: Math.exp(truth.noise * normal(random)),
        features: measuredFeatures(entry, truth.noise, random),
      },
    ]),
  );
}

/** The features of an entry in its profile. Throws RangeError if it has none. */
export function profiledFeatures(profiles: ReadonlyMap<string, Profile>, { name }: CatalogueEntry): WorkloadFeatures {
  const profile = profiles.get(name);
  if (profile === undefined) throw new RangeError(`'${name}' has no profile`);
  return profile.features;
}

/**
 * The platform's own predictor, trained on noisy runs of random sets at random shares in steps of 10 %. It learns the
 * truth from these runs only, and features from `profiles`.
 */
export function profiledPredictor(
  catalogue: readonly CatalogueEntry[],
  truth: GpuTruth,
  profiles: ReadonlyMap<string, Profile>,
  budget: ProfilingBudget,
  random: Random,
): SlowdownPredictor {
  const samples: SlowdownSample[] = [];
  const pick = (count: number): number => Math.floor(randomFraction(random) * count);
  while (samples.length < budget.runs) {
    const set = Array.from({ length: 1 + pick(budget.mostTasks) }, () => ({
      entry: catalogue[pick(catalogue.length)] as CatalogueEntry,
      share: (1 + pick(10)) / 10,
    }));
    const slowdowns = truth.slowdowns(set.map(({ entry, share }) => ({ workload: entry.name, share })));
    const clients = set.map(({ entry, share }): CoLocated => ({ features: profiledFeatures(profiles, entry), share }));
    for (const [i, one] of clients.entries()) {
      const others = clients.filter((other) => other !== one);
      samples.push({ one, others, slowdown: (slowdowns[i] as number) * Math.exp(truth.noise * normal(random)) });
    }
  }
  const key = { gpuType: 'replay', mode: 'mps' } as const;
  return modelPredictor(trainModel(key, samples.slice(0, budget.runs), { version: 1, seed: random.uint32() }));
}

/** Number and size of the sets that are searched before a replay. */
export interface QuotaBudget {
  sets: number;
  mostTasks: number;
  /** Shares of a set sum to at most this, in percent; absent: to any sum. */
  maxTotal?: number;
}

/** Of the driver that all is measured with. */
export const driverMajor = 1;

/** What may be other than usual in the offline phase. */
interface SearchOptions {
  exploration?: Exploration;
  /** Draws a member of a set; default: any of the catalogue, each as likely. */
  draw?: () => CatalogueEntry;
}

/**
 * FaaShare's offline phase (section VII-B): random sets are run at the shares that the search proposes, and a table
 * keeps their noisy times. For a set that is not in the table, the nearest row answers, or none.
 */
export function offlineQuotas(
  catalogue: readonly CatalogueEntry[],
  truth: GpuTruth,
  profiles: ReadonlyMap<string, Profile>,
  predictor: SlowdownPredictor,
  gpuType: string,
  budget: QuotaBudget,
  random: Random,
  { exploration, draw = () => randomItem(catalogue, random) }: SearchOptions = {},
): QuotaTable {
  const table = new QuotaTable({ predictorOf: () => predictor });
  const pick = (count: number): number => Math.floor(randomFraction(random) * count);
  for (let i = 0; i < budget.sets; i += 1) {
    const set = Array.from({ length: 2 + pick(budget.mostTasks - 1) }, () => draw());
    const known = set.map((entry): QuotaJob => ({
      function: `${functionPrefix}${entry.name}`,
      version: '0.0.1',
      batch: entry.batch,
      features: profiledFeatures(profiles, entry),
    }));
    const features = set.map((entry) => profiledFeatures(profiles, entry));
    const points = search(set, features, truth, random, { exploration, maxTotal: budget.maxTotal });
    for (const point of points) table.record(known, { gpuType, mode: 'mps' }, point, driverMajor);
  }
  return table;
}

/** Noisy measurements of a set at the shares that a search proposes, at most seven. */
export function search(
  set: readonly CatalogueEntry[],
  features: readonly WorkloadFeatures[],
  truth: GpuTruth,
  random: Random,
  { exploration, maxTotal = Infinity }: { exploration?: Exploration | undefined; maxTotal?: number | undefined } = {},
): MeasuredPoint[] {
  const problem: SearchProblem = {
    jobs: features.map((one) => ({
      prior: predictedPrior(capacityModel, one),
      weight: 1,
      maxSlowdown: Infinity,
      features: one,
    })),
    space: { ...classSpace, maxTotal },
    hyper: defaultHyper,
    ...(exploration && { exploration }),
  };
  const points: MeasuredPoint[] = [];
  for (;;) {
    const next = propose(problem, points, points.length, random);
    if (!next) return points;
    const clients = set.map(({ name }, at) => ({ workload: name, share: (next.shares[at] ?? 0) / 100 }));
    const slowdowns = [...truth.slowdowns(clients)].map((one) => one * Math.exp(truth.noise * normal(random)));
    points.push({ shares: next.shares, slowdowns });
  }
}
