import type { GpuAnnotation, GpuNeed } from '../gpu.js';
import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import { entityNamePattern } from './names.js';

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

/** What the value of a field must be, for the reader, for people and as JSON schema. */
interface Rule<Value> {
  accepts(value: JsonValue): value is Value & JsonValue;
  expected: string;
  schema: JsonObject;
}

function whole(max: number): Rule<number> {
  return {
    accepts: (value): value is number =>
      typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max,
    expected: `a whole number from 1 to ${max}`,
    schema: { type: 'integer', minimum: 1, maximum: max },
  };
}

/** A number above 0, and at most `max`. */
function positive(max: number, expected: string): Rule<number> {
  return {
    accepts: (value): value is number => typeof value === 'number' && value > 0 && value <= max,
    expected,
    schema: { type: 'number', exclusiveMinimum: 0, maximum: max },
  };
}

function oneOf<Word extends string>(words: readonly Word[]): Rule<Word> {
  return {
    accepts: (value): value is Word => words.some((word) => word === value),
    expected: `one of ${words.map((one) => `'${one}'`).join(', ')}`,
    schema: { enum: [...words] },
  };
}

/** Characters of a text, as JSON schema counts them. */
const lengthOf = (text: string): number => [...text].length;

const model: Rule<string> = {
  accepts: (value): value is string => typeof value === 'string' && value.length > 0 && lengthOf(value) <= maxLength,
  expected: `a text of 1 to ${maxLength} characters`,
  schema: { type: 'string', minLength: 1, maxLength },
};

/** What figures of a function or workload must be. */
export const expectedFeatures = `an object of at most ${maxFeatures} numbers`;

/** Whether a value can be the figures of a function or workload by name. */
export function areFeatures(value: JsonValue): value is Record<string, number> {
  if (!isJsonObject(value)) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= maxFeatures &&
    entries.every(([name, one]) => typeof one === 'number' && lengthOf(name) <= maxLength)
  );
}

const featureNumbers: Rule<Record<string, number>> = {
  accepts: areFeatures,
  expected: expectedFeatures,
  schema: {
    type: 'object',
    maxProperties: maxFeatures,
    propertyNames: { maxLength },
    additionalProperties: { type: 'number' },
  },
};

const entityName = entityNamePattern.source.replace(/^\^|\$$/g, '');
/** `a`, `pkg/a`, `/ns/a` or `/ns/pkg/a`. */
const actionName = new RegExp(`^(?:${entityName}(?:/${entityName})?|/${entityName}/${entityName}(?:/${entityName})?)$`);

const sampleOrAction: Rule<JsonObject | string> = {
  accepts: (value): value is JsonObject | string =>
    isJsonObject(value) || (typeof value === 'string' && actionName.test(value)),
  expected: "an object of parameters, or an action's name",
  schema: { anyOf: [{ type: 'object' }, { type: 'string', pattern: actionName.source }] },
};

const rules = {
  memoryMiB: whole(maxMemoryMiB),
  sloMs: positive(longestSloMs, `a number of milliseconds above 0, at most ${longestSloMs}`),
  class: oneOf(classes),
  batch: whole(maxBatch),
  gpus: whole(maxGpus),
  spans: whole(maxSpans),
  model,
  features: featureNumbers,
  mpsPercent: whole(100),
  smRequest: positive(1, 'a fraction above 0, at most 1'),
  smLimit: positive(1, 'a fraction above 0, at most 1'),
  sample: sampleOrAction,
  isolation: oneOf(isolations),
} satisfies Record<keyof GpuAnnotation, Rule<unknown>>;

/** For editors: what each field means. */
const descriptions: Record<keyof GpuAnnotation, string> = {
  memoryMiB: 'Device memory, MiB',
  sloMs: 'Longest time from acceptance to result, ms; absent: best effort',
  class: 'What kind of work it is; default inference',
  batch: 'Requests that may run as one, at most; default 1',
  gpus: 'Devices that it needs; default 1',
  spans: 'Devices of one node that its memory may be split over, at most; 1 with several gpus',
  model: 'Name of the model, which functions with the same one share profiles by',
  features: 'Figures of the function, by name',
  mpsPercent: 'Fixed share of the device, percent',
  smRequest: 'Share of the device that it needs, as a fraction; at most smLimit and mpsPercent',
  smLimit: 'Share of the device that it may have, as a fraction; at most mpsPercent',
  sample: 'What profiling may run: a parameter object, or the name of an action',
  isolation: 'Functions that may share its device: any, those of its namespace, or none; default namespace',
};

/** The JSON schema of annotation `gpu`. Of two bounds that fields set each other, smRequest ≤ smLimit ≤ mpsPercent, it says nothing. */
export function gpuAnnotationSchema(): JsonObject {
  const properties = Object.entries(rules).map(([field, { schema }]) => [
    field,
    { description: descriptions[field as keyof GpuAnnotation], ...schema },
  ]);
  return {
    title: 'Annotation gpu of an action',
    type: 'object',
    properties: Object.fromEntries(properties) as JsonObject,
    required: ['memoryMiB'],
    additionalProperties: false,
    if: { properties: { gpus: { type: 'number', minimum: 2 } }, required: ['gpus'] },
    then: { properties: { spans: { const: 1 } } },
  };
}

/** The value of a field, or undefined if it is absent. Throws GpuAnnotationError. */
function fieldOf<Field extends keyof typeof rules>(
  fields: JsonObject,
  field: Field,
): ((typeof rules)[Field] extends Rule<infer Value> ? Value : never) | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  const { accepts, expected } = rules[field] as Rule<never>;
  if (accepts(value)) return value;
  throw refused(field, expected, value);
}

/** Reads annotation `gpu`, and fills in its defaults. Throws GpuAnnotationError. */
export function readGpuAnnotation(value: JsonValue): GpuAnnotation {
  if (!isJsonObject(value)) throw new GpuAnnotationError("Annotation 'gpu' must be an object.");
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(rules, key));
  if (unknown !== undefined) {
    const known = Object.keys(rules).join(', ');
    throw new GpuAnnotationError(`Annotation 'gpu' has no field '${unknown.slice(0, maxLength)}'; it has ${known}.`);
  }
  const memoryMiB = fieldOf(value, 'memoryMiB');
  if (memoryMiB === undefined) throw refused('memoryMiB', rules.memoryMiB.expected, undefined);
  const annotation: GpuAnnotation = {
    memoryMiB,
    class: fieldOf(value, 'class') ?? 'inference',
    batch: fieldOf(value, 'batch') ?? 1,
    gpus: fieldOf(value, 'gpus') ?? 1,
    isolation: fieldOf(value, 'isolation') ?? 'namespace',
  };
  const optional = {
    sloMs: fieldOf(value, 'sloMs'),
    spans: fieldOf(value, 'spans'),
    model: fieldOf(value, 'model'),
    features: fieldOf(value, 'features'),
    mpsPercent: fieldOf(value, 'mpsPercent'),
    smRequest: fieldOf(value, 'smRequest'),
    smLimit: fieldOf(value, 'smLimit'),
    sample: fieldOf(value, 'sample'),
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
