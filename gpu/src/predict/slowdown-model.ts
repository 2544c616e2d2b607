// Models of slowdown for a GPU type and mode: training, prediction, and their form as text.
import { createHash } from 'node:crypto';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import {
  capacityModel,
  capacitySlowdown,
  faashareFeatures,
  noFeatures,
  type SlowdownPredictor,
  type TypicalFeatures,
  faashareFeatureNames,
} from './slowdown-predictor.js';
import { sampleFault, type SlowdownSample } from './samples.js';
import {
  fitSlowdowns,
  predictSlowdown,
  type SlowdownRegression,
  type SmoothRegression,
} from './slowdown-regression.js';
import type { Forest } from './forest.js';
import { decodeForest, decodeNumbers, encodeArrays, encodeForest, type ForestDocument } from './forest-codec.js';

/** What was learned from measured runs. */
export interface SlowdownModel extends GpuKind {
  /** Counts the models of this key. */
  version: number;
  /** Runs that it was learned from. */
  sampleCount: number;
  /** When it was taken over, epoch ms; absent in models of earlier versions. */
  learnedAt?: number;
  seed: number;
  /** Mean figures of the workloads in its samples. A mean replaces a figure that a workload lacks. */
  typical: TypicalFeatures;
  /** Of the slowdown over the capacity model's, on FaaShare's seven features. */
  regression: SlowdownRegression;
}

/** Fewer runs say less than the capacity model. */
export const leastSamples = 20;
/** Predictions end here: further away, nothing was measured. */
const mostSlowdown = 1000;

/**
 * Learns a model: a pure function of its arguments. Samples at fault are left out. What is learned is by how much runs
 * miss the capacity model, so that far from anything measured the prediction is that model's with the usual miss.
 * Throws RangeError for fewer than `leastSamples` good samples.
 */
export function trainModel(
  key: GpuKind,
  samples: readonly SlowdownSample[],
  { version, seed }: { version: number; seed: number },
): SlowdownModel {
  const good = samples.filter((sample) => sampleFault(sample) === undefined);
  if (good.length < leastSamples) {
    throw new RangeError(`A model takes ${leastSamples} runs, and there are ${good.length}.`);
  }
  const typical = typicalOf(good);
  const runs = good.map(({ one, others, slowdown }) => {
    const row = faashareFeatures(one, others, typical);
    return { row, miss: slowdown / capacitySlowdown(one, row) };
  });
  const { gpuType, mode } = key;
  const [rows, misses] = [runs.map(({ row }) => row), runs.map(({ miss }) => miss)];
  const regression = fitSlowdowns(rows, misses, seed);
  return { gpuType, mode, version, sampleCount: good.length, seed, typical, regression };
}

/** Means over the workloads that have the figure; 0 if no workload has it, so that its columns are constant. */
function typicalOf(samples: readonly SlowdownSample[]): TypicalFeatures {
  const workloads = samples.flatMap(({ one, others }) => [one, ...others]);
  const meanOf = (name: keyof TypicalFeatures): number => {
    const told = workloads.flatMap(({ features }) => features[name] ?? []);
    return told.length === 0 ? noFeatures[name] : told.reduce((sum, value) => sum + value, 0) / told.length;
  };
  return { dramUtil: meanOf('dramUtil'), l2Util: meanOf('l2Util') };
}

/** Predictions of a model. */
export function modelPredictor({ regression, typical }: SlowdownModel): SlowdownPredictor {
  return {
    slowdown(one, others) {
      const row = faashareFeatures(one, others, typical);
      const predicted = capacitySlowdown(one, row) * predictSlowdown(regression, row);
      return predicted > 1 ? Math.min(predicted, mostSlowdown) : 1;
    },
  };
}

/** The predictor of each GPU type and mode; the capacity model where nothing was learned. */
export class PredictorTable {
  private readonly models = new Map<string, { model: SlowdownModel; predictor: SlowdownPredictor }>();

  /** Takes a model over, unless it is older than the one there is. Returns whether it did. */
  put(model: SlowdownModel): boolean {
    const name = kindName(model);
    if ((this.models.get(name)?.model.version ?? -Infinity) > model.version) return false;
    this.models.set(name, { model, predictor: modelPredictor(model) });
    return true;
  }

  predictor(key: GpuKind): SlowdownPredictor {
    return this.models.get(kindName(key))?.predictor ?? capacityModel;
  }

  model(key: GpuKind): SlowdownModel | undefined {
    return this.models.get(kindName(key))?.model;
  }

  /** Forgets what was learned of a kind of GPU, `gpuType/mode`; returns whether there was anything. */
  deleteNamed(name: string): boolean {
    return this.models.delete(name);
  }

  /** How many models there are. */
  get size(): number {
    return this.models.size;
  }

  /** All models, by GPU type and mode. */
  list(): SlowdownModel[] {
    const byName = [...this.models].sort(([one], [other]) => (one < other ? -1 : 1));
    return byName.map(([, { model }]) => model);
  }
}

const format = 'gpuwhisk slowdown model';
const formatVersion = 1;

/** Thrown for a text that is no model, is damaged, or is of another version. */
export class ModelFormatError extends Error {
  override name = 'ModelFormatError';

  constructor(reason: string) {
    super(`This is no usable slowdown model: ${reason}.`);
  }
}

interface Body extends Omit<SlowdownModel, 'typical' | 'regression'> {
  features: readonly string[];
  /** Absent in stored models of earlier versions, which counted an absent figure as 0. */
  typical?: TypicalFeatures;
  forest: ForestDocument;
  smooth: Record<'means' | 'factors' | 'slopes' | 'centres' | 'norms' | 'heights', string> & {
    mean: number;
    shrink: number;
  };
}

/** A model as text: a line with format, version and digest, and a line of JSON with numbers in base64. */
export function encodeModel(model: SlowdownModel): string {
  const { forest, smooth } = model.regression;
  const { scaling, mean, shrink, ...arrays } = smooth;
  const body: Body = {
    gpuType: model.gpuType,
    mode: model.mode,
    version: model.version,
    sampleCount: model.sampleCount,
    ...(model.learnedAt !== undefined && { learnedAt: model.learnedAt }),
    seed: model.seed,
    features: faashareFeatureNames,
    typical: model.typical,
    forest: encodeForest(forest),
    smooth: { mean, shrink, ...encodeArrays({ ...scaling, ...arrays }) },
  };
  const line = JSON.stringify(body);
  return `${JSON.stringify({ format, formatVersion, sha256: digest(line) })}\n${line}\n`;
}

/** Reads what `encodeModel` wrote. Throws ModelFormatError. */
export function decodeModel(text: string): SlowdownModel {
  const [head = '', line = ''] = text.split('\n', 2);
  const header = parsed(head) as { format?: unknown; formatVersion?: unknown; sha256?: unknown } | null;
  if (header?.format !== format) throw new ModelFormatError(`it does not begin with the format '${format}'`);
  if (header.formatVersion !== formatVersion) {
    throw new ModelFormatError(`its format has version ${String(header.formatVersion)} instead of ${formatVersion}`);
  }
  if (header.sha256 !== digest(line)) throw new ModelFormatError('it is damaged: its SHA-256 is another');
  const body = parsed(line) as Body;
  if (body.features.join() !== faashareFeatureNames.join()) {
    throw new ModelFormatError(`its features are ${body.features.join(', ')}`);
  }
  const { gpuType, mode, version, sampleCount, learnedAt, seed, typical = noFeatures } = body;
  if (![typical.dramUtil, typical.l2Util].every((one) => one >= 0 && Number.isFinite(one))) {
    throw new ModelFormatError('its typical features are no parts of a GPU');
  }
  const regression = { forest: forestOf(body.forest), smooth: smoothOf(body.smooth) };
  const key = { gpuType, mode, version, sampleCount, seed, typical };
  return { ...key, ...(learnedAt !== undefined && { learnedAt }), regression };
}

function forestOf(document: Body['forest']): Forest {
  const forest = decodeForest(document, faashareFeatureNames.length);
  if (forest === undefined) throw new ModelFormatError('its forest is not whole');
  return forest;
}

function smoothOf({ mean, shrink, ...arrays }: Body['smooth']): SmoothRegression {
  const width = faashareFeatureNames.length;
  const { means, factors, slopes, centres, norms, heights } = decodeNumbers(arrays);
  const wide = [means, factors, slopes].every((array) => array.length === width);
  const centred = centres.length === width * heights.length && norms.length === heights.length;
  if (!wide || !centred || !(shrink > 0) || !Number.isFinite(mean)) {
    throw new ModelFormatError('its regression is not whole');
  }
  return { scaling: { means, factors }, mean, slopes, shrink, centres, norms, heights };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch (error) {
    throw new ModelFormatError(`it is no JSON (${(error as Error).message})`);
  }
}

const digest = (line: string): string => createHash('sha256').update(line).digest('hex');

/**
 * The predictor of each type and mode of GPU from models as text; the capacity model for kinds that none of them is of. Throws
 * ModelFormatError.
 */
export function predictorsOf(models: readonly string[]): (gpu: GpuKind) => SlowdownPredictor {
  const table = new PredictorTable();
  for (const text of models) table.put(decodeModel(text));
  return (gpu) => table.predictor(gpu);
}
