import { seededRandom } from '@gpuwhisk/common/system/random';
import { bootstrapModels, fitModel, powerOf } from './model/fit.js';
import { leastArea, saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { ModelWorkload } from '@gpuwhisk/bench/replay/model/gpu-model';
import { readIgniter, type IgniterData } from './model/igniter.js';
import type { Setting } from './setting.js';
import { lookupTruth, modelTruth, type MeasuredPair } from './truth.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { readIdleModels } from './workloads/idle.js';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import {
  measuredTogether,
  readLucidPairs,
  readLucidSolo,
  trainingOfTableOne,
  readTableOne,
} from './workloads/measured.js';
import { readIgniterSurfaces, timeOverShare } from './workloads/surfaces.js';

/** Memory of an RTX 3090, as in FaaShare's first server, MiB. */
const rtx3090MiB = 24_576;
const v100MiB = 16_384;
/** FaaShare's budget (section V): 1000 runs, sets of up to ten. */
const paperBudget = { runs: 1000, mostTasks: 10 };
/** The search of a set takes at most seven runs. */
const quotaBudget = { sets: 40, mostTasks: 3 };
const pairQuotaBudget = { sets: 40, mostTasks: 2 };
/** Batches of iGniter's models in the setting with pairs. */
const igniterBatches = [1, 4, 8, 16, 32];

/**
 * Table I on the model tier. Its results are extrapolated: most workloads were not measured beside others, or not on
 * this GPU.
 */
export async function tableOneSetting(data: IgniterData, draws: number, folder?: string): Promise<Setting> {
  const fitted = fitModel(data);
  const { idleW, capW } = fitted.power;
  const inference = await readTableOne(data.power, idleW, folder);
  const training = trainingOfTableOne(await readLucidSolo(capW - idleW, folder));
  return withModel('table1', inference, training, data, draws, {
    cluster: { type: 'rtx3090', mode: 'mps', memoryMiB: rtx3090MiB, perNode: 8 },
    budget: paperBudget,
    quotaBudget,
  });
}

/**
 * Pairs of iGniter's inference on a V100, on the model tier. Results stay within measured points while shares sum to 1.
 */
export async function igniterSetting(data: IgniterData, draws: number, folder?: string): Promise<Setting> {
  const { power } = fitModel(data);
  const surfaces = await readIgniterSurfaces(folder);
  const catalogue = [...surfaces].flatMap(([model, surface]) =>
    igniterBatches.map((batch): CatalogueEntry => {
      const stretch = stretchTable(timeOverShare(surface, batch));
      const widest = data.pairs
        .filter((side) => side.neighbour.model === model && side.neighbour.share === 0.8)
        .sort((a, b) => Math.abs(a.neighbour.batch - batch) - Math.abs(b.neighbour.batch - batch))[0];
      if (!widest) throw new RangeError(`no traffic was measured for ${model}`);
      const name = `${model}-${batch}`;
      return {
        name,
        class: 'inference',
        batch,
        unitMs: timeOverShare(surface, batch)(1),
        memoryMiB: v100MiB / 2,
        model: {
          name,
          stretch,
          saturation: saturationOf(stretch),
          l2Util: widest.neighbour.l2Util,
          dramUtil: widest.neighbour.dramUtil,
          powerW: powerOf(data.power, model, batch, 1, power.idleW),
        },
        sources: {
          unitMs: `igniter_gpulet_solo ${name}`,
          memoryMiB: invented,
          stretch: `igniter_gpulet_solo ${name}`,
          traffic: `igniter_gpulet_solo ${name}`,
        },
      };
    }),
  );
  return withModel('igniter', catalogue, catalogue, data, draws, {
    cluster: { type: 'v100', mode: 'mps', memoryMiB: v100MiB, perNode: 8 },
    budget: { runs: 1000, mostTasks: 2 },
    quotaBudget: pairQuotaBudget,
  });
}

/**
 * Pairs of inference that leaves SMs idle, on a V100, on the model tier. Results stay within measured points while shares
 * sum to 1.
 */
export async function idleSetting(data: IgniterData, draws: number, folder?: string): Promise<Setting> {
  const catalogue = await readIdleModels(data.power, fitModel(data).power.idleW, v100MiB, folder);
  return withModel('idle', catalogue, catalogue, data, draws, {
    cluster: { type: 'v100', mode: 'mps', memoryMiB: v100MiB, perNode: 8 },
    budget: { runs: 1000, mostTasks: 2 },
    quotaBudget: pairQuotaBudget,
    maxTotal: 100,
  });
}

/**
 * Lucid's training pairs on an RTX 3090, on the lookup tier: workloads of which every two were measured together. Each
 * task is set to half of the memory, since only pairs were measured. Shares have no effect here.
 */
export async function lucidSetting(folder?: string): Promise<Setting> {
  const pairs = await readLucidPairs(folder);
  const together = new Set(measuredTogether(pairs));
  const catalogue = (await readLucidSolo(0, folder)).filter(({ name }) => together.has(name));
  return withPairs(catalogue, catalogue, pairs);
}

function withPairs(
  strict: readonly CatalogueEntry[],
  bestEffort: readonly CatalogueEntry[],
  pairs: readonly MeasuredPair[],
): Setting {
  const catalogue = [...new Set([...strict, ...bestEffort])];
  const used = new Map(catalogue.map(({ name, model }) => [name, model.saturation]));
  return {
    name: 'lucid',
    catalogue,
    strict,
    bestEffort,
    truths: [lookupTruth(pairs, used)],
    withCatalogue: (one, other) => withPairs(one, other, pairs),
    cluster: { type: 'rtx3090', mode: 'mps', memoryMiB: rtx3090MiB, perNode: 8 },
    budget: { runs: 1000, mostTasks: 2 },
    quotaBudget: pairQuotaBudget,
    memoryMiB: rtx3090MiB / 2,
    leastWork: () => ofPairs,
  };
}

/** Reads the measurements that the model tier is fitted to. */
export const readModelData = readIgniter;

function withModel(
  name: string,
  strict: readonly CatalogueEntry[],
  bestEffort: readonly CatalogueEntry[],
  data: IgniterData,
  draws: number,
  rest: Pick<Setting, 'cluster' | 'budget' | 'quotaBudget' | 'maxTotal'>,
): Setting {
  const catalogue = [...new Set([...strict, ...bestEffort])];
  const workloads = new Map<string, ModelWorkload>(catalogue.map((entry) => [entry.name, entry.model]));
  const truths = bootstrapModels(data, draws, seededRandom(1)).map((parameters) => modelTruth(parameters, workloads));
  return {
    name,
    catalogue,
    strict,
    bestEffort,
    truths,
    ...rest,
    leastWork: leastWorkOf(catalogue, rest.quotaBudget.mostTasks === 2),
    withCatalogue: (one, other) => withModel(name, one, other, data, draws, rest),
  };
}

/** Work of a job where at most two share a GPU, since none is faster than alone. */
const ofPairs = 0.5;

/** `Setting.leastWork` on the model tier: the area of share and time, or that of pairs if more of the two is needed. */
function leastWorkOf(catalogue: readonly CatalogueEntry[], isPairs: boolean): Setting['leastWork'] {
  const areas = new Map(catalogue.map((entry) => [entry, leastArea(entry.model.stretch)]));
  const mean = [...areas.values()].reduce((sum, area) => sum + area, 0) / catalogue.length;
  // Both hold for all jobs together, not for one job each.
  if (isPairs && mean < ofPairs) return () => ofPairs;
  return (entry) => areas.get(entry) ?? leastArea(entry.model.stretch);
}
