import type { DeviceMode } from '@gpuwhisk/common/gpu';
import {
  capacityModel,
  capacitySlowdown,
  faashareFeatures,
  noFeatures,
  type SlowdownPredictor,
  type TypicalFeatures,
} from './slowdown-predictor.js';
import { sampleFault, type SlowdownSample } from './samples.js';
import { fitSlowdowns, predictSlowdown, type SlowdownRegression } from './slowdown-regression.js';

/** What a model holds for: what was learned on one GPU type in one mode says nothing of another. */
export interface ModelKey {
  /** Short name of the GPU's model: `a100-40`. */
  gpuType: string;
  mode: DeviceMode;
}

/** A key's name in tables and documents: `a100-40/mps`. */
export const modelName = ({ gpuType, mode }: ModelKey): string => `${gpuType}/${mode}`;

/** What was learned from measured runs. */
export interface SlowdownModel extends ModelKey {
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
  key: ModelKey,
  samples: readonly SlowdownSample[],
  { version, seed }: { version: number; seed: number },
): SlowdownModel {
  const good = samples.filter((sample) => sampleFault(sample) === undefined);
  if (good.length < leastSamples) {
    throw new RangeError(`A model takes ${leastSamples} runs, and there are ${good.length}.`);
  }
  const typical = typicalOf(good);
  const rows = good.map(({ one, others }) => faashareFeatures(one, others, typical));
  const misses = good.map(({ one, slowdown }, i) => slowdown / capacitySlowdown(one, rows[i]!));
  const { gpuType, mode } = key;
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
    const name = modelName(model);
    if ((this.models.get(name)?.model.version ?? -Infinity) > model.version) return false;
    this.models.set(name, { model, predictor: modelPredictor(model) });
    return true;
  }

  predictor(key: ModelKey): SlowdownPredictor {
    return this.models.get(modelName(key))?.predictor ?? capacityModel;
  }

  model(key: ModelKey): SlowdownModel | undefined {
    return this.models.get(modelName(key))?.model;
  }

  /** Forgets what was learned; returns whether there was anything. */
  delete(key: ModelKey): boolean {
    return this.deleteNamed(modelName(key));
  }

  /** The same by `gpuType/mode`. */
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
