// What policies know in SMORE's experiments: noisy runs alone, a sample of pairs, and sets that ran together.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { asMember } from '@gpuwhisk/gpu/predict/degradation';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { trainPairModel, type MemberKind, type PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import { workloadMember } from '@gpuwhisk/gpu/stages/place/set-effects';
import { normal, type GpuTruth, type TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import { functionKey } from '@gpuwhisk/gpu/ledger/occupancy';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { functionPrefix } from '@gpuwhisk/bench/replay/jobs';
import { measuredFeatures } from '../profiling.js';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** What one run alone has shown. */
export interface Known {
  /** Measured over true time alone. */
  soloFactor: number;
  record: FeatureRecord & { smUtil: number };
}

/** What was measured before a replay. */
export interface Learned {
  known: ReadonlyMap<string, Known>;
  /** Learned from pairs, with weights corrected by observed sets; and before these, with all weights at 1. */
  predictor: SmoreDegradation;
  ofPairs: SmoreDegradation;
  /** Measured pairs that both have learned from. */
  pairs: number;
}

/** The part of all pairs that is measured (thesis section 5.2.1). */
const measuredPart = 0.2;
/** Sets that are observed once each, and the functions beside the training job in one at most. */
const observedSets = 1000;
const mostFunctions = 4;

/** The namespace of the requests. */
export const namespace = 'guest';

/** The GPUs of the papers' server. */
export const rtx3090: GpuKind = { gpuType: 'rtx3090', mode: 'mps' };

/** Roles of the predictor: victim and neighbour. */
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
 * noise, and trains the predictor on them. Then sets of a training job and functions are observed as they would be live,
 * and correct the weights (thesis equation 3.7).
 */
export function learn(
  functions: readonly CatalogueEntry[],
  trainings: readonly CatalogueEntry[],
  truth: GpuTruth,
  random: Random,
  kinds: readonly GpuKind[] = [rtx3090],
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
  const ofPairs = new SmoreDegradation();
  const of = { workload: trainings, function: functions };
  let pairs = 0;
  for (const kind of kinds) {
    for (const [victim, neighbour] of roles) {
      const samples: PairSample[] = [];
      for (const one of of[victim]) {
        for (const other of of[neighbour]) {
          if (randomFraction(random) < measuredPart) samples.push(measured(one, other, known, truth, random, kind));
        }
      }
      pairs += samples.length;
      const key = { ...kind, victim, neighbour };
      ofPairs.put(
        trainPairModel(key, samples, { version: 1, seed: random.uint32(), kinds: ['blend'], sets: ['measured'] }),
      );
    }
  }
  const predictor = new SmoreDegradation({}, ofPairs.state());
  for (const kind of kinds) {
    for (let at = 0; at < observedSets; at += 1) {
      const training = randomItem(trainings, random);
      const count = 1 + Math.floor(mostFunctions * randomFraction(random));
      const beside = Array.from({ length: count }, () => randomItem(functions, random));
      observeSet(predictor, training, beside, known, truth, random, kind);
    }
  }
  return { known, predictor, ofPairs, pairs };
}

/** Observes a training job and functions together, by the names that placement knows them by. */
function observeSet(
  predictor: SmoreDegradation,
  training: CatalogueEntry,
  functions: readonly CatalogueEntry[],
  known: ReadonlyMap<string, Known>,
  truth: GpuTruth,
  random: Random,
  kind: GpuKind,
): void {
  const set = [training, ...functions];
  const slowdowns = truth.slowdowns(
    set.map((entry) => clientOf(entry, known)),
    kind,
  );
  const members = set.map((entry, at) => {
    const { record } = knownOf(entry, known);
    const { name } = entry;
    if (at === 0) return asMember(workloadMember({ id: name, name, features: record }), at);
    const key = functionKey({ action: `${functionPrefix}${name}`, namespace });
    return asMember({ kind: 'function', name: key, share: 1, record }, at);
  });
  const degradations = set.map((entry, at) => {
    const ratio = ((slowdowns[at] ?? 1) * Math.exp(truth.noise * normal(random))) / knownOf(entry, known).soloFactor;
    return { id: `${at}`, degradation: ratio - 1 };
  });
  predictor.observe({ ...kind, members }, degradations);
}

function knownOf({ name }: CatalogueEntry, known: ReadonlyMap<string, Known>): Known {
  const found = known.get(name);
  if (found === undefined) throw new RangeError(`nothing is known of '${name}'`);
  return found;
}

/** A function at the share that it gets; a training job may use all of the GPU. */
function clientOf(entry: CatalogueEntry, known: ReadonlyMap<string, Known>): TruthClient {
  return { workload: entry.name, share: entry.class === 'training' ? 1 : shareOf(knownOf(entry, known)) };
}

/** D of the first, by a noisy run of both together over a noisy run alone. */
function measured(
  victim: CatalogueEntry,
  neighbour: CatalogueEntry,
  known: ReadonlyMap<string, Known>,
  truth: GpuTruth,
  random: Random,
  kind: GpuKind,
): PairSample {
  const [slowdown = 1] = truth.slowdowns([clientOf(victim, known), clientOf(neighbour, known)], kind);
  const ratio = (slowdown * Math.exp(truth.noise * normal(random))) / knownOf(victim, known).soloFactor;
  const side = (entry: CatalogueEntry): PairSample['victim'] => {
    return { model: entry.name, features: knownOf(entry, known).record };
  };
  return { victim: side(victim), neighbour: side(neighbour), degradation: ratio - 1 };
}
