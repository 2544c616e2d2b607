import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { CoLocated, SlowdownPredictor, WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { CatalogueEntry } from './workloads/catalogue.js';
import { featuresOf } from './workloads/catalogue.js';

/** What may be run before a replay begins, so that predictors know something. */
export interface ProfilingBudget {
  /** Runs whose time is taken; FaaShare's own set has 1000 (section V). */
  runs: number;
  /** Tasks that run beside each other, at most. */
  mostTasks: number;
}

/** What a policy knows of a workload: as its solo runs showed it. */
export interface Profile {
  /** Over the true time alone. */
  soloFactor: number;
  features: WorkloadFeatures;
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
      { soloFactor: Math.exp(truth.noise * normal(random)), features: featuresOf(entry) },
    ]),
  );
}

/**
 * The platform's own predictor, trained on noisy runs of random sets at random shares in steps of 10 %, which is all that
 * it ever sees of the truth.
 */
export function profiledPredictor(
  catalogue: readonly CatalogueEntry[],
  truth: GpuTruth,
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
    const clients = set.map(({ entry, share }): CoLocated => ({ features: featuresOf(entry), share }));
    for (const [i, one] of clients.entries()) {
      const others = clients.filter((other) => other !== one);
      samples.push({ one, others, slowdown: (slowdowns[i] as number) * Math.exp(truth.noise * normal(random)) });
    }
  }
  const key = { gpuType: 'replay', mode: 'mps' } as const;
  return modelPredictor(trainModel(key, samples.slice(0, budget.runs), { version: 1, seed: random.uint32() }));
}
