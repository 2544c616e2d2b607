import type { GpuTruth, TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import { saturationOf, stretchTable } from '../replay/model/gpu-model.js';
import { invented, type CatalogueEntry, tableOne } from '../replay/workloads/catalogue.js';
import {
  aloneOnDevice,
  standInSlowdowns,
  soloMs,
  type StandInClient,
  type StandInModel,
  type StandInWorkload,
} from '../stand-in-model.js';

/** A workload of table I that a function runs on the stand-in. */
export interface LiveEntry extends CatalogueEntry {
  /** Its name in the stand-in's model. */
  workload: string;
  isTraining: boolean;
}

/** Models of table I that are trained as best effort; replay has measured training of the same ones (Lucid). */
const trained = new Set(['resnet18', 'resnet50', 'vgg16', 'mobilenet']);
const largestTrainedBatch = 128;
/** Time and memory of a training step, forward and back, in inferences (`train_step` of runtimes/cuda). */
const trainingFactor = 3;
/** Memory of a context and of the driver's other needs, MiB. */
const contextMiB = 512;
/** Memory is rounded up to multiples of this, so that a ready process can serve several functions. */
const memoryStepMiB = 1024;

/**
 * Inference of all rows of table I that replay has, and training of some, with their solo values on a device of the
 * stand-in.
 */
export function liveCatalogue(model: StandInModel, type: string): LiveEntry[] {
  return tableOne.flatMap(({ name, slosMs }) => {
    const row = model.workloads.find((one) => one.name === name);
    if (row === undefined) throw new RangeError(`the stand-in has no ${name}`);
    const batches = [...slosMs.keys()];
    const training = trained.has(name) ? batches.filter((batch) => batch <= largestTrainedBatch) : [];
    return [
      ...batches.map((batch) => entryOf(model, type, row, batch, false)),
      ...training.map((batch) => entryOf(model, type, row, batch, true)),
    ];
  });
}

function entryOf(
  model: StandInModel,
  type: string,
  row: StandInWorkload,
  batch: number,
  isTraining: boolean,
): LiveEntry {
  const name = `${row.name}-${batch}${isTraining ? '-training' : ''}`;
  const alone = aloneOnDevice(model, type, row.name, batch);
  const times = isTraining ? trainingFactor : 1;
  const stretch = stretchTable((share) => {
    const [slowdown = 1] = standInSlowdowns(model, type, [{ workload: row.name, batch, percent: 100 * share }]);
    return slowdown;
  });
  const source = `the stand-in's ${row.name}`;
  return {
    name,
    workload: row.name,
    batch,
    isTraining,
    class: isTraining ? 'training' : 'inference',
    unitMs: soloMs(row, batch) * alone.stretch * times,
    memoryMiB: roundedUp(row.weightsMiB + batch * row.itemMiB * times + contextMiB),
    model: { name, stretch, saturation: saturationOf(stretch), l2Util: 0, dramUtil: alone.dramUtil, powerW: 0 },
    sources: { unitMs: source, memoryMiB: invented, stretch: source, traffic: invented },
  };
}

function roundedUp(memoryMiB: number): number {
  return Math.ceil(memoryMiB / memoryStepMiB) * memoryStepMiB;
}

/** The stand-in's slowdowns of concurrent workloads. Throws RangeError for a workload that is not in the catalogue. */
export function standInTruth(model: StandInModel, type: string, catalogue: readonly LiveEntry[]): GpuTruth {
  const entries = new Map(catalogue.map((entry) => [entry.name, entry]));
  const entryOf = ({ workload }: TruthClient): LiveEntry => {
    const entry = entries.get(workload);
    if (entry === undefined) throw new RangeError(`'${workload}' is not in the catalogue`);
    return entry;
  };
  const clientOf = (client: TruthClient): StandInClient => {
    const { workload, batch, isTraining } = entryOf(client);
    return { workload, batch, isTraining, percent: 100 * client.share };
  };
  return {
    noise: 0,
    slowdowns: (clients) => Float64Array.from(standInSlowdowns(model, type, clients.map(clientOf))),
    used: (clients) =>
      Math.min(
        1,
        clients.reduce((sum, client) => sum + Math.min(client.share, entryOf(client).model.saturation), 0),
      ),
  };
}
