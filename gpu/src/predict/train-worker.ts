import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { decodeModel, encodeModel, modelPredictor, trainModel } from './slowdown-model.js';
import { capacityModel } from './slowdown-predictor.js';
import type { SlowdownSample } from './samples.js';
import type { SlowdownPredictor } from './slowdown-predictor.js';

/** What a training gets. */
export interface TrainingInput extends GpuKind {
  /** Of the model to be. */
  version: number;
  seed: number;
  training: readonly SlowdownSample[];
  /** Samples that neither model has seen. */
  heldOut: readonly SlowdownSample[];
  /** The model in force as text; absent: none was learned yet. */
  inForce?: string;
}

/** What it gives. */
export interface TrainingOutput {
  /** The model, as text. */
  model: string;
  /** By which its predictions of the samples held out miss, and those in force do: see `missOf`. */
  miss: number;
  missInForce: number;
}

/** Further off counts as this far: one sample that is none cannot decide between models. */
const greatestMiss = Math.log(4);

/** This module, for a thread of its own. */
export const trainingModule = new URL(import.meta.url);

/** Mean distance of predicted from measured slowdowns, of their logarithms, bounded; Infinity for no sample. */
export function missOf(predictor: SlowdownPredictor, samples: readonly SlowdownSample[]): number {
  if (samples.length === 0) return Infinity;
  const misses = samples.map(({ one, others, slowdown }) =>
    Math.min(greatestMiss, Math.abs(Math.log(predictor.slowdown(one, others) / slowdown))),
  );
  return misses.reduce((sum, miss) => sum + miss, 0) / misses.length;
}

/** Learns a model and judges it. Throws RangeError where there are too few good samples, ModelFormatError. */
export function trainAndJudge(input: TrainingInput): TrainingOutput {
  const { version, seed, training, heldOut, inForce } = input;
  const model = trainModel(input, training, { version, seed });
  const before = inForce === undefined ? capacityModel : modelPredictor(decodeModel(inForce));
  return {
    model: encodeModel(model),
    miss: missOf(modelPredictor(model), heldOut),
    missInForce: missOf(before, heldOut),
  };
}

/** The same for messages between threads. */
export default function train(input: JsonValue): JsonValue {
  return { ...trainAndJudge(input as unknown as TrainingInput) };
}
