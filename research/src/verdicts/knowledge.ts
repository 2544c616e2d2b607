// What policies of a run go by: predictors that learned from workloads which the run does not have, and then from its own runs.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { asMember, bySlowdowns, type DegradationModel } from '@gpuwhisk/gpu/predict/degradation';
import { functionKey } from '@gpuwhisk/gpu/ledger/occupancy';
import { trainPairModel, type PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { CoLocated, SlowdownPredictor, WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { normal, type GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { bySmore } from '@gpuwhisk/bench/replay/smore-degradations';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { remembering } from '../replay/remembering.js';
import { observed, type Observed, type RunFunction } from './functions.js';
import { shareGrid } from './world-truth.js';
import type { Candidate, MeasuredWorld } from './worlds.js';

/** Runs of other workloads beside each other, and pairs of them, that a platform has seen before. */
const budget = { runs: 400, mostTogether: 3, pairs: 120 } as const;

/** Learned before a run, from workloads that it does not have. */
export interface Earlier {
  predictor: SlowdownPredictor;
  /** State of SMORE's predictor. */
  pairs: ReturnType<SmoreDegradation['state']>;
}

/** Learns from runs of `others` with the truth's noise. The same random numbers give the same answer. */
export function learnEarlier(
  world: MeasuredWorld,
  others: readonly Candidate[],
  truth: GpuTruth,
  random: Random,
): Earlier {
  const seen = new Map<string, Observed>(others.map((one) => [one.workload, observed(world, one, truth, random)]));
  const knownOf = ({ workload }: Candidate): Observed => seen.get(workload) as Observed;
  const samples: SlowdownSample[] = [];
  while (samples.length < budget.runs) {
    const count = 1 + Math.floor(budget.mostTogether * randomFraction(random));
    const set = Array.from({ length: count }, () => ({
      one: randomItem(others, random),
      share: randomItem(shareGrid, random),
    }));
    const slowdowns = truth.slowdowns(set.map(({ one, share }) => ({ workload: one.workload, share })));
    const clients = set.map(({ one, share }): CoLocated => ({ features: knownOf(one).features, share }));
    for (const [at, one] of clients.entries()) {
      const slowdown = (slowdowns[at] as number) * Math.exp(truth.noise * normal(random));
      samples.push({ one, others: clients.filter((_, other) => other !== at), slowdown });
    }
  }
  const kind = { gpuType: world.gpuType, mode: world.seenAs };
  const model = trainModel(kind, samples.slice(0, budget.runs), { version: 1, seed: random.uint32() });
  const smore = new SmoreDegradation();
  const pairs = Array.from({ length: budget.pairs }, (): PairSample => {
    const [victim, neighbour] = [randomItem(others, random), randomItem(others, random)];
    const [slowdown = 1] = truth.slowdowns([victim, neighbour].map(({ workload }) => ({ workload, share: 1 })));
    const side = (one: Candidate): PairSample['victim'] => ({ model: one.workload, features: knownOf(one).record });
    return {
      ...{ victim: side(victim), neighbour: side(neighbour) },
      degradation: slowdown * Math.exp(truth.noise * normal(random)) - 1,
    };
  });
  for (const [victim, neighbour] of roles)
    smore.put(
      trainPairModel({ ...kind, victim, neighbour }, pairs, { version: 1, seed: random.uint32(), kinds: ['blend'] }),
    );
  return { predictor: remembering(modelPredictor(model)), pairs: smore.state() };
}

const roles = [
  ['workload', 'function'],
  ['function', 'workload'],
  ['function', 'function'],
] as const;

/** What a policy is made with. */
export interface Knowledge {
  predictor: SlowdownPredictor;
  degradationsOf(gpu: GpuKind): DegradationModel;
  quotas: QuotaTable;
  /** Learns from a run of the replay. */
  observe(run: ObservedRun): void;
}

/** A run that was beside others for at least this part of its time teaches what they cost it. */
const besidePart = 0.9;

/** What was learned earlier, corrected by the runs of the replay. */
export function ownKnowledge({ predictor, pairs }: Earlier): Knowledge {
  const smore = new SmoreDegradation({}, pairs);
  // A ledger that is made of a view names whole devices with a profile of no name.
  const typeOf = ({ gpuType, mode }: GpuKind): GpuKind => ({ gpuType: gpuType.replace(/:.*$/, ''), mode });
  return {
    predictor,
    degradationsOf: (gpu) => bySmore(smore, typeOf(gpu)),
    quotas: new QuotaTable({ predictorOf: () => predictor }),
    observe({ task, gpu, ranMs, beside }) {
      if (task.soloMs === undefined || beside.length === 0) return;
      if (beside.some(({ part }) => part < besidePart)) return;
      const members = [task, ...beside.map((one) => one.task)].map((one, at) => {
        const name = functionKey({ action: one.function, namespace: one.namespace });
        const { featureRecord: record } = one;
        return asMember({ kind: 'function', name, share: 1, ...(record && { record }) }, at);
      });
      const { gpuType, mode } = typeOf(gpu);
      smore.observe({ gpuType, mode, members }, [{ id: '0', degradation: ranMs / task.soloMs - 1 }]);
    },
  };
}

/** Too little to change a decision; it tells functions with equal features apart. */
const tag = 1e-9;

/** Features by which `trueKnowledge` knows the functions of a run. */
export function taggedFeatures(features: WorkloadFeatures, at: number): WorkloadFeatures {
  return { ...features, l2Util: (features.l2Util ?? 0) + tag * (at + 1) };
}

/** The truth in place of predictions, for functions with `taggedFeatures` by their number in the run. */
export function trueKnowledge(functions: readonly RunFunction[], truth: GpuTruth): Knowledge {
  const names = new Map(functions.map(({ task, candidate }) => [textOf(task.features), candidate.workload]));
  const predictor = remembering({
    slowdown(one, others) {
      const clients = [one, ...others].map(({ features, share }) => {
        const workload = names.get(textOf(features));
        if (workload === undefined) throw new RangeError(`no function has the features ${textOf(features)}`);
        return { workload, share };
      });
      return truth.slowdowns(clients)[0] ?? 1;
    },
  });
  return {
    predictor,
    degradationsOf: () => bySlowdowns(predictor),
    quotas: new QuotaTable({ predictorOf: () => predictor }),
    observe: () => undefined,
  };
}

const textOf = (features: WorkloadFeatures | undefined): string =>
  `${features?.smUtil} ${features?.dramUtil} ${features?.l2Util}`;
