// Bodies of requests that register and change workloads.
import { areFeatures, expectedFeatures } from '@gpuwhisk/common/entities/gpu-annotation';
import { malformedContent } from '@gpuwhisk/common/errors';
import type { Workload } from '@gpuwhisk/common/gpu';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** The body of a registration. */
export interface NewWorkload {
  name: string;
  device?: string;
  pid?: number;
  memoryMiB?: number;
  mpsPercent?: number;
  /** Fraction 0–1. */
  maxDegradation: number;
  baselineRate?: number;
  features?: Record<string, number>;
  command?: string;
  /** Whether the process is yet to be started, as an MPS client. */
  start: boolean;
}

const workloadFields = [
  ...[
    'name',
    'device',
    'pid',
    'memoryMiB',
    'mpsPercent',
    'maxDegradation',
    'baselineRate',
    'command',
    'start',
    'features',
  ],
];
const changeFields = ['pid', 'processStart', 'maxDegradation', 'baselineRate', 'rate', 'stalled', 'features'];
/** Rates of a workload per second: 1 in 30 years, and more than the samples of any training. */
const [leastRate, greatestRate] = [1e-9, 1e12];
const maxNameLength = 200;
const maxCommandLength = 4000;
const defaultMaxDegradation = 0.05;

function refused(field: string, expected: string): Error {
  return malformedContent(`'${field}' must be ${expected}`);
}

function text(body: JsonObject, field: string, maxLength: number): string | undefined {
  const value = body[field];
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.trim() !== '' && value.length <= maxLength) return value;
  throw refused(field, `a text of 1 to ${maxLength} characters`);
}

function whole(body: JsonObject, field: string, max: number): number | undefined {
  const value = body[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw refused(field, `a whole number from 1 to ${max}`);
}

function rate(body: JsonObject, field: string): number | undefined {
  const value = body[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= leastRate && value <= greatestRate) return value;
  throw refused(field, `a number from ${leastRate} to ${greatestRate}, per second`);
}

function fraction(body: JsonObject, field: string): number | undefined {
  const value = body[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw refused(field, 'a number from 0 to 1');
}

function features(body: JsonObject): Record<string, number> | undefined {
  const value = body.features;
  if (value === undefined || areFeatures(value)) return value;
  throw refused('features', expectedFeatures);
}

function refuseUnknown(body: JsonObject, fields: readonly string[]): void {
  const unknown = Object.keys(body).find((key) => !fields.includes(key));
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a workload`);
}

/** Changes of a workload, and its present rate. */
export interface WorkloadChanges extends Pick<
  Partial<Workload>,
  'pid' | 'processStart' | 'maxDegradation' | 'baselineRate' | 'rate' | 'features'
> {
  /** Whether the rate is only what a step can still reach that does not end. */
  stalled?: boolean;
}

/** Reads changes of a workload: its process, start time, bound, and rates alone and now. Throws ApiError (400). */
export function readWorkloadChanges(body: JsonValue): WorkloadChanges {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  refuseUnknown(body, changeFields);
  const told = {
    pid: whole(body, 'pid', 2 ** 22),
    processStart: whole(body, 'processStart', Number.MAX_SAFE_INTEGER),
    maxDegradation: fraction(body, 'maxDegradation'),
    baselineRate: rate(body, 'baselineRate'),
    rate: rate(body, 'rate'),
    features: features(body),
    stalled: body.stalled,
  };
  if (told.stalled !== undefined && (typeof told.stalled !== 'boolean' || told.rate === undefined)) {
    throw refused('stalled', "true or false, beside a 'rate'");
  }
  const changes = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
  if (Object.keys(changes).every((field) => field === 'processStart')) {
    throw malformedContent("one of 'pid', 'maxDegradation', 'baselineRate', 'rate' and 'features' must be given");
  }
  return changes;
}

/** Reads the body of a registration. Throws ApiError (400). */
export function readNewWorkload(body: JsonValue): NewWorkload {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  refuseUnknown(body, workloadFields);
  const name = text(body, 'name', maxNameLength);
  if (name === undefined) throw refused('name', 'given');
  const { start = false } = body;
  const maxDegradation = fraction(body, 'maxDegradation') ?? defaultMaxDegradation;
  if (typeof start !== 'boolean') throw refused('start', 'true or false');
  const workload: NewWorkload = { name, maxDegradation, start };
  const optional = {
    device: text(body, 'device', maxNameLength),
    pid: whole(body, 'pid', 2 ** 22),
    memoryMiB: whole(body, 'memoryMiB', 1024 * 1024),
    mpsPercent: whole(body, 'mpsPercent', 100),
    baselineRate: rate(body, 'baselineRate'),
    features: features(body),
    command: text(body, 'command', maxCommandLength),
  };
  for (const [key, value] of Object.entries(optional))
    if (value !== undefined) Object.assign(workload, { [key]: value });
  return workload;
}
