import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { Profile } from './profiling.js';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { CatalogueEntry } from './workloads/catalogue.js';

/** How jobs are drawn. */
export interface JobMix {
  /** Half of the jobs are drawn from these and have an SLO. */
  strict: readonly CatalogueEntry[];
  /** The others from these. */
  bestEffort: readonly CatalogueEntry[];
  /** SLO over the time alone. */
  sloFactor: number;
  /** Batches or iterations of a job: the one factor that stretches all of them. */
  length: number;
  /** Injection or cold start, ms. */
  startMs: number;
  /** Overrides what a task is said to hold; for truths in which only pairs may meet. */
  memoryMiB?: number;
}

/** A job for each of `arrivedAt`, in random order, half of them with an SLO. */
export function drawJobs(
  mix: JobMix,
  arrivedAt: readonly number[],
  profiles: ReadonlyMap<string, Profile>,
  random: Random,
): ReplayJob[] {
  const isStrict = arrivedAt.map((_, i) => i % 2 === 0);
  shuffle(isStrict, random);
  return arrivedAt.map((at, i): ReplayJob => {
    const from = isStrict[i] ? mix.strict : mix.bestEffort;
    const entry = from[Math.floor(randomFraction(random) * from.length)] as CatalogueEntry;
    const profile = profiles.get(entry.name);
    if (!profile) throw new RangeError(`'${entry.name}' has no profile`);
    const soloMs = entry.unitMs * mix.length;
    return {
      workload: entry.name,
      soloMs,
      startMs: mix.startMs,
      task: {
        id: `job${i}`,
        function: `/guest/${entry.name}`,
        version: '0.0.1',
        namespace: 'guest',
        batch: entry.batch,
        gpus: 1,
        memoryMiB: mix.memoryMiB ?? entry.memoryMiB,
        soloMs: soloMs * profile.soloFactor,
        startMs: mix.startMs,
        features: profile.features,
        arrivedAt: at,
        ...(isStrict[i] && { sloMs: soloMs * mix.sloFactor }),
        class: entry.class,
      },
    };
  });
}

function shuffle<T>(values: T[], random: Random): void {
  for (let i = values.length - 1; i > 0; i -= 1) {
    const j = Math.floor(randomFraction(random) * (i + 1));
    [values[i], values[j]] = [values[j] as T, values[i] as T];
  }
}
