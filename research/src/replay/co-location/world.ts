// The world of SMORE's experiments, from measured data.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { readWeekTraces } from '../../data/request-traces.js';
import { bootstrapModels, fitModel } from '../model/fit.js';
import { readIgniter } from '../model/igniter.js';
import { readLucidPairs, readLucidSolo } from '../workloads/measured.js';
import { readFunctions } from './functions.js';
import { learn, rtx3090 } from './learned.js';
import type { World } from './run.js';
import { sliceKinds, sliceTruth } from './slices.js';
import { trainingsOf } from './trainings.js';
import { coLocationTruth, fitTraining, functionDeviation, resampled } from './truth.js';

/**
 * Reads the measurements, fits `draws` truths to bootstrap samples of them, and learns what policies know of each: of GPUs
 * under MPS, or of slices.
 */
export async function readWorld(
  draws: number,
  seed: number,
  folder: string,
  of: 'mps' | 'mig' = 'mps',
): Promise<World> {
  const data = await readIgniter(folder);
  const { idleW, capW } = fitModel(data).power;
  const lucid = await readLucidSolo(capW - idleW, folder);
  const pairs = await readLucidPairs(folder);
  const functions = await readFunctions(data.power, idleW, folder);
  const trainings = trainingsOf(lucid);
  const weeks = await readWeekTraces(folder);
  const minutes = (weeks[0]?.minutes ?? []).map((_, at) => weeks.reduce((sum, one) => sum + (one.minutes[at] ?? 0), 0));
  const entries = new Map([...functions, ...trainings].map((entry) => [entry.name, entry]));
  const all = new Map(lucid.map((entry) => [entry.name, entry]));
  const random = seededRandom(seed);
  return {
    functions,
    trainings,
    minutes,
    draws: bootstrapModels(data, draws, random).map((parameters, at) => {
      const training = fitTraining(resampled(pairs, random), all);
      const contention = {
        functions: parameters,
        functionDeviation: functionDeviation(data, parameters),
        training,
      };
      const truth = (of === 'mps' ? coLocationTruth : sliceTruth)(contention, entries, seed * 1009 + at);
      return { truth, learned: learn(functions, trainings, truth, random, of === 'mps' ? [rtx3090] : sliceKinds) };
    }),
  };
}
