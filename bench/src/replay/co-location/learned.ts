// What policies know in SMORE's experiments: noisy runs alone, and a sample of pairs.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { trainPairModel, type MemberKind, type PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import { normal, type GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { measuredFeatures } from '../profiling.js';
import type { CatalogueEntry } from '../workloads/catalogue.js';

/** What one run alone has shown. */
export interface Known {
  /** Measured over true time alone. */
  soloFactor: number;
  record: FeatureRecord & { smUtil: number };
}

/** What was measured before a replay. */
export interface Learned {
  known: ReadonlyMap<string, Known>;
  predictor: SmoreDegradation;
  /** Measured pairs that the predictor has learned from. */
  pairs: number;
}

/** The part of all pairs that is measured (thesis section 5.2.1). */
export const measuredPart = 0.2;

const gpu = { gpuType: 'rtx3090', mode: 'mps' } as const;

/** Roles of the predictor: who suffers, and from whom. */
const roles: readonly (readonly [MemberKind, MemberKind])[] = [
  ['workload', 'function'],
  ['function', 'workload'],
  ['function', 'function'],
];

/** The share that a function gets: the class that it fills by what is known. */
export function shareOf({ record }: Known): number {
  return classAtOrAbove(record.smUtil) / 100;
}

/**
 * Runs all functions and training jobs alone once, and a fifth of the pairs of each role together once, with the truth's
 * noise, and trains the predictor on them.
 */
export function learn(
  functions: readonly CatalogueEntry[],
  trainings: readonly CatalogueEntry[],
  truth: GpuTruth,
  random: Random,
): Learned {
  const known = new Map(
    [...functions, ...trainings].map((entry): [string, Known] => {
      const soloFactor = Math.exp(truth.noise * normal(random));
      const { smUtil, dramUtil = 0, l2Util = 0 } = measuredFeatures(entry, truth.noise, random);
      const { memoryMiB, batch } = entry;
      const record = { smUtil, dramUtil, l2Util, memoryMiB, batch, soloMs: entry.unitMs * soloFactor };
      return [entry.name, { soloFactor, record }];
    }),
  );
  const predictor = new SmoreDegradation();
  const of = { workload: trainings, function: functions };
  let pairs = 0;
  for (const [victim, neighbour] of roles) {
    const samples: PairSample[] = [];
    for (const one of of[victim]) {
      for (const other of of[neighbour]) {
        if (randomFraction(random) < measuredPart) samples.push(measured(one, other, known, truth, random));
      }
    }
    pairs += samples.length;
    const key = { ...gpu, victim, neighbour };
    predictor.put(
      trainPairModel(key, samples, { version: 1, seed: random.uint32(), kinds: ['blend'], sets: ['measured'] }),
    );
  }
  return { known, predictor, pairs };
}

/** D of the first, by a noisy run of both together over a noisy run alone. */
function measured(
  victim: CatalogueEntry,
  neighbour: CatalogueEntry,
  known: ReadonlyMap<string, Known>,
  truth: GpuTruth,
  random: Random,
): PairSample {
  const knownOf = ({ name }: CatalogueEntry): Known => {
    const found = known.get(name);
    if (found === undefined) throw new RangeError(`nothing is known of '${name}'`);
    return found;
  };
  const clientOf = (entry: CatalogueEntry): { workload: string; share: number } => {
    return { workload: entry.name, share: entry.class === 'training' ? 1 : shareOf(knownOf(entry)) };
  };
  const [slowdown = 1] = truth.slowdowns([clientOf(victim), clientOf(neighbour)]);
  const ratio = (slowdown * Math.exp(truth.noise * normal(random))) / knownOf(victim).soloFactor;
  const side = (entry: CatalogueEntry): PairSample['victim'] => {
    return { model: entry.name, features: knownOf(entry).record };
  };
  return { victim: side(victim), neighbour: side(neighbour), degradation: ratio - 1 };
}
