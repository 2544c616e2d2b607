// Runs by which PROTEAN's model of slowdowns is profiled before functions are served.
import type { Random } from '@gpuwhisk/common/system/random';
import { SliceSlowdowns } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import { deviceType, functionOf, memoryOf, profiles, type ServedModel, type World } from './world.js';

/** Runs alone on each slice, and beside others on the 4g. */
const aloneRuns = 2;
const besideRuns = 8;
const neighbours = 3;

/** The model after profiling, with the noise of its runs. */
export function profiled({ models, noise, clientCost }: World, random: Random): SliceSlowdowns {
  const slowdowns = new SliceSlowdowns();
  const ran = (model: ServedModel, at: number, beside: readonly ServedModel[]): void => {
    const demand = beside.reduce((sum, one) => sum + (one.bandwidth[at] as number), model.bandwidth[at] as number);
    const stretch = Math.max(1, demand) * (beside.length > 0 ? 1 + clientCost : 1);
    for (const isStrict of [true, false]) {
      slowdowns.ran({
        task: { function: functionOf({ model, isStrict }), version: '1', arrivedAt: 0 },
        gpu: { gpuType: `${deviceType}:${profiles[at] ?? ''}`, mode: 'mig' },
        ranMs: model.soloMs * (model.deficiency[at] as number) * stretch * Math.exp(noise * normal(random)),
        beside: beside.map((one) => ({ task: { function: functionOf({ model: one, isStrict: false }) }, part: 1 })),
      });
    }
  };
  for (const model of models) {
    for (const [at, profile] of profiles.entries()) {
      if (memoryOf(profile) < model.memoryMiB) continue;
      for (let run = 0; run < aloneRuns; run += 1) ran(model, at, []);
    }
  }
  for (let run = 0; run < besideRuns; run += 1) {
    for (const model of models) {
      ran(
        model,
        1,
        Array.from({ length: neighbours }, () => models[random.uint32() % models.length] as ServedModel),
      );
    }
  }
  return slowdowns;
}
