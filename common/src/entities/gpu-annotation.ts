import type { GpuAnnotation, GpuNeed } from '../gpu.js';
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import { isEntityName } from './names.js';

const longestSloMs = 24 * 3_600_000;
const maxMemoryMiB = 1024 * 1024;
/** The largest batch that an action may ask for. */
export const maxBatch = 1024;
const maxGpus = 16;
const maxSpans = 4;
const maxFeatures = 64;
const maxLength = 200;
const classes = ['inference', 'training', 'compute'] as const;
const isolations = ['shared', 'namespace', 'exclusive'] as const;

/** Annotation `gpu` cannot be understood; `message` names the field. */
export class GpuAnnotationError extends Error {
  override name = 'GpuAnnotationError';
}

function refused(field: string, expected: string, found: JsonValue | undefined): GpuAnnotationError {
  const shown = found === undefined ? 'nothing' : JSON.stringify(found).slice(0, maxLength);
  return new GpuAnnotationError(`Field '${field}' of annotation 'gpu' must be ${expected}; found ${shown}.`);
}

function whole(fields: JsonObject, field: string, max: number): number | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw refused(field, `a whole number from 1 to ${max}`, value);
}

/** A number above 0, and at most `max`. */
function positive(fields: JsonObject, field: string, max: number, expected: string): number | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value > 0 && value <= max) return value;
  throw refused(field, expected, value);
}

function oneOf<Word extends string>(fields: JsonObject, field: string, words: readonly Word[]): Word | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  const word = words.find((one) => one === value);
  if (word !== undefined) return word;
  throw refused(field, `one of ${words.map((one) => `'${one}'`).join(', ')}`, value);
}

function modelOf({ model }: JsonObject): string | undefined {
  if (model === undefined) return undefined;
  if (typeof model === 'string' && model.length > 0 && model.length <= maxLength) return model;
  throw refused('model', `a text of 1 to ${maxLength} characters`, model);
}

/** What figures of a function or workload must be. */
export const expectedFeatures = `an object of at most ${maxFeatures} numbers`;

/** Whether a value can be the figures of a function or workload by name. */
export function areFeatures(value: JsonValue): value is Record<string, number> {
  if (!isJsonObject(value)) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= maxFeatures && entries.every(([name, one]) => typeof one === 'number' && name.length <= maxLength)
  );
}

function featuresOf({ features }: JsonObject): Record<string, number> | undefined {
  if (features === undefined || areFeatures(features)) return features;
  throw refused('features', expectedFeatures, features);
}

/** `a`, `pkg/a`, `/ns/a` or `/ns/pkg/a`. */
function isActionName(text: string): boolean {
  const absolute = text.startsWith('/');
  const parts = (absolute ? text.slice(1) : text).split('/');
  const [fewest, most] = absolute ? [2, 3] : [1, 2];
  return parts.length >= fewest && parts.length <= most && parts.every(isEntityName);
}

function sampleOf({ sample }: JsonObject): JsonObject | string | undefined {
  if (sample === undefined) return undefined;
  if (isJsonObject(sample) || (typeof sample === 'string' && isActionName(sample))) return sample;
  throw refused('sample', "an object of parameters, or an action's name", sample);
}

const readers = {
  memoryMiB: (fields: JsonObject) => whole(fields, 'memoryMiB', maxMemoryMiB),
  sloMs: (fields: JsonObject) =>
    positive(fields, 'sloMs', longestSloMs, `a number of milliseconds above 0, at most ${longestSloMs}`),
  class: (fields: JsonObject) => oneOf(fields, 'class', classes),
  batch: (fields: JsonObject) => whole(fields, 'batch', maxBatch),
  gpus: (fields: JsonObject) => whole(fields, 'gpus', maxGpus),
  spans: (fields: JsonObject) => whole(fields, 'spans', maxSpans),
  model: modelOf,
  features: featuresOf,
  mpsPercent: (fields: JsonObject) => whole(fields, 'mpsPercent', 100),
  smRequest: (fields: JsonObject) => positive(fields, 'smRequest', 1, 'a fraction above 0, at most 1'),
  smLimit: (fields: JsonObject) => positive(fields, 'smLimit', 1, 'a fraction above 0, at most 1'),
  sample: sampleOf,
  isolation: (fields: JsonObject) => oneOf(fields, 'isolation', isolations),
} satisfies Record<keyof GpuAnnotation, (fields: JsonObject) => unknown>;

/** Reads annotation `gpu`, and fills in its defaults. Throws GpuAnnotationError. */
export function readGpuAnnotation(value: JsonValue): GpuAnnotation {
  if (!isJsonObject(value)) throw new GpuAnnotationError("Annotation 'gpu' must be an object.");
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(readers, key));
  if (unknown !== undefined) {
    const known = Object.keys(readers).join(', ');
    throw new GpuAnnotationError(`Annotation 'gpu' has no field '${unknown.slice(0, maxLength)}'; it has ${known}.`);
  }
  const memoryMiB = readers.memoryMiB(value);
  if (memoryMiB === undefined) throw refused('memoryMiB', `a whole number from 1 to ${maxMemoryMiB}`, undefined);
  const annotation: GpuAnnotation = {
    memoryMiB,
    class: readers.class(value) ?? 'inference',
    batch: readers.batch(value) ?? 1,
    gpus: readers.gpus(value) ?? 1,
    isolation: readers.isolation(value) ?? 'namespace',
  };
  const optional = {
    sloMs: readers.sloMs(value),
    spans: readers.spans(value),
    model: readers.model(value),
    features: readers.features(value),
    mpsPercent: readers.mpsPercent(value),
    smRequest: readers.smRequest(value),
    smLimit: readers.smLimit(value),
    sample: readers.sample(value),
  };
  for (const [key, given] of Object.entries(optional))
    if (given !== undefined) Object.assign(annotation, { [key]: given });
  checkShares(annotation);
  const { gpus, spans = 1 } = annotation;
  if (gpus > 1 && spans > 1) throw refused('spans', `1 where 'gpus' is more than 1, as it is ${gpus}`, spans);
  return annotation;
}

/** smRequest ≤ smLimit ≤ mpsPercent, of those that are there. */
function checkShares({ smRequest, smLimit, mpsPercent }: GpuAnnotation): void {
  const most = mpsPercent === undefined ? 1 : mpsPercent / 100;
  if (smLimit !== undefined && smLimit > most) {
    throw refused('smLimit', `at most 'mpsPercent', ${mpsPercent} %`, smLimit);
  }
  const limit = smLimit ?? most;
  if (smRequest === undefined || smRequest <= limit) return;
  const bound = smLimit === undefined ? `'mpsPercent', ${mpsPercent} %` : `'smLimit', ${smLimit}`;
  throw refused('smRequest', `at most ${bound}`, smRequest);
}

/** Features that are parts of a GPU. */
const utilisations = ['smUtil', 'dramUtil', 'l2Util'];

/** The part of a checked annotation that rides with activations. A utilisation outside 0 to 1 is left out of its features. */
export function gpuNeedOf({ features, ...annotation }: GpuAnnotation, timeoutMs: number): GpuNeed {
  const used = Object.entries(features ?? {}).filter(
    ([name, value]) => !utilisations.includes(name) || (value >= 0 && value <= 1),
  );
  const need = { ...annotation, timeoutMs, ...(used.length > 0 && { features: Object.fromEntries(used) }) };
  delete need.sample;
  return need;
}
