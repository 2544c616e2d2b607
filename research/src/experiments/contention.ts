import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench, Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import { repositoryDir } from '@gpuwhisk/bench/machine';
import type { Linear } from '../world/pressure.js';
import { licensedSources, readMeasured } from '../world/sources.js';
import {
  fitStandIn,
  fullBatches,
  outsideErrors,
  standInErrors,
  standInSides,
  trainingFactors,
} from '../world/stand-in-fit.js';

/** The file that the stand-in and the simulator read. */
const file = 'native/cudasim/contention/fitted.json';

/** The stand-in's workloads that were measured: in ParvaGPU's slices, and in Gavel's pairs of training jobs. */
const inference = {
  resnet152: 'resnet152',
  resnet101: 'resnet101',
  resnet50: 'resnet50',
  densenet121: 'densenet121',
  vgg16: 'vgg16',
  mobilenet_v2: 'mobilenetv2',
};
const training = { resnet50: 'ResNet-50', resnet18: 'ResNet-18' };

const rounded = (value: number): number => Number(value.toPrecision(4));

const lineOf = ({ intercept, weights }: Linear): { intercept: number; byLogFill: number } => ({
  intercept: rounded(intercept),
  byLogFill: rounded(weights[0] ?? 0),
});

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** Fits the stand-in's contention to the licensed data sets, prints its errors and writes the file of it. */
export const contention: Bench = {
  summary:
    "the stand-in's contention, fitted to the licensed data sets (BENCH_DATA): errors, and the file that it reads",
  parts: [],
  async run({ say }) {
    const measured = await readMeasured(benchDataDir(), { licensed: true });
    say(`contention: licensed subset, ${measured.sets.length} sets`);
    for (const { why } of measured.unused) say(`  not used: ${why}`);
    const batches = fullBatches(measured.sets);
    for (const { source, model, variant, fullBatch, log, points } of batches)
      say(
        `  ${source} ${model} ${variant}: full at a batch of ${fullBatch.toFixed(2)}, error ${percent(log)} of ${points}`,
      );
    const { sides, features } = standInSides(measured);
    const model = fitStandIn(sides, features);
    const { sharpness, bound, demand, sensitivity, pressure } = model.parameters;
    const errors = standInErrors(sides, features);
    for (const one of errors)
      say(
        `  ${one.source} ${one.gpu}, ${one.processes} processes, ${one.leftOut} left out: ${percent(one.log)} ` +
          `(${percent(one.logP90)}), constant ${percent(one.constantLog)} (${percent(one.constantLogP90)}), ${one.sides} sides`,
      );
    const { sets } = await readMeasured(benchDataDir(), { licensed: false });
    const outside = outsideErrors(
      model,
      sets.filter(({ source }) => !licensedSources.includes(source)),
    );
    for (const one of outside)
      say(
        `  not fitted to: ${one.source} ${one.gpu} ${one.mode} ${one.kind}: ${percent(one.log)} (${percent(one.logP90)}), ` +
          `their median ${percent(one.constantLog)} (${percent(one.constantLogP90)}), ${one.sides} sides`,
      );
    const fitted = {
      about:
        'Contention of the stand-in, fitted by `npm run research -- contention` to the licensed subset of the measurements (Gavel, ParvaGPU). docs/gpu.md has the form, docs/world.md its errors. Batches that fill a device are of ParvaGPU, factors of training of Gavel. Errors are absolute logarithms, mean and 90th percentile.',
      subset: 'licensed subset',
      form: {
        ...{ sharpness: rounded(sharpness), bound },
        ...{ demand: lineOf(demand), sensitivity: lineOf(sensitivity), pressure: lineOf(pressure) },
        source: 'gavel, parvagpu',
      },
      fullBatch: Object.entries(inference).map(([workload, name]) => {
        const found = batches.find((one) => one.source === 'parvagpu' && one.model === name);
        if (found === undefined) throw new RangeError(`ParvaGPU has no slices of ${name}`);
        return { workload, value: rounded(found.fullBatch), source: 'parvagpu', log: rounded(found.log) };
      }),
      training: Object.entries(training).map(([workload, name]) => {
        const [own = 1, others = 1] = trainingFactors(model, features, name);
        return { workload, sensitivity: rounded(own), pressure: rounded(others), source: 'gavel' };
      }),
      errors: errors.map(({ log, logP90, constantLog, constantLogP90, ...part }) => ({
        ...part,
        ...{ log: rounded(log), logP90: rounded(logP90) },
        ...{ constantLog: rounded(constantLog), constantLogP90: rounded(constantLogP90) },
      })),
    };
    await writeFile(join(repositoryDir, file), `${JSON.stringify(fitted, undefined, 2)}\n`);
    say(`  ${file} is written; run native/cudasim/tables.mjs`);
    const figures = ['sides', 'log', 'logP90', 'constantLog', 'constantLogP90'] as const;
    const named = [
      ...errors.map((one) => ({ ...one, part: `${one.source}.${one.gpu}.${one.leftOut}.${one.processes}` })),
      ...outside.map((one) => ({ ...one, part: `${one.source}.${one.gpu}.${one.mode}.outside.${one.kind}` })),
    ];
    return named.flatMap((one): Measurement[] =>
      figures.map((figure) => ({ name: `${figure}.${one.part}`, value: one[figure] })),
    );
  },
};
