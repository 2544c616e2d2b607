import { malformedContent } from '@gpuwhisk/common/errors';
import type { Workload } from '@gpuwhisk/common/gpu';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** What a workload is registered with. */
export interface NewWorkload {
  name: string;
  device?: string;
  pid?: number;
  memoryMiB?: number;
  mpsPercent?: number;
  /** Fraction 0–1. */
  maxDegradation: number;
  command?: string;
  /** It is yet to be started, as an MPS client. */
  start: boolean;
}

const fields = ['name', 'device', 'pid', 'memoryMiB', 'mpsPercent', 'maxDegradation', 'command', 'start'];
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
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
  throw refused(field, 'a number above 0');
}

/** What is told of a workload that runs: its process, when that started, its rate alone and now. Throws ApiError (400). */
export function readWorkloadChanges(
  body: JsonValue,
): Pick<Partial<Workload>, 'pid' | 'processStart' | 'baselineRate' | 'rate'> {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const told = {
    pid: whole(body, 'pid', 2 ** 22),
    processStart: whole(body, 'processStart', Number.MAX_SAFE_INTEGER),
    baselineRate: rate(body, 'baselineRate'),
    rate: rate(body, 'rate'),
  };
  const changes = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
  if (Object.keys(changes).every((field) => field === 'processStart')) {
    throw malformedContent("one of 'pid', 'baselineRate' and 'rate' must be given");
  }
  return changes;
}

/** Reads the body of a registration. Throws ApiError (400). */
export function readNewWorkload(body: JsonValue): NewWorkload {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const unknown = Object.keys(body).find((key) => !fields.includes(key));
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a workload`);
  const name = text(body, 'name', maxNameLength);
  if (name === undefined) throw refused('name', 'given');
  const { maxDegradation = defaultMaxDegradation, start = false } = body;
  if (typeof maxDegradation !== 'number' || maxDegradation < 0 || maxDegradation > 1) {
    throw refused('maxDegradation', 'a number from 0 to 1');
  }
  if (typeof start !== 'boolean') throw refused('start', 'true or false');
  const workload: NewWorkload = { name, maxDegradation, start };
  const optional = {
    device: text(body, 'device', maxNameLength),
    pid: whole(body, 'pid', 2 ** 22),
    memoryMiB: whole(body, 'memoryMiB', 1024 * 1024),
    mpsPercent: whole(body, 'mpsPercent', 100),
    command: text(body, 'command', maxCommandLength),
  };
  for (const [key, value] of Object.entries(optional))
    if (value !== undefined) Object.assign(workload, { [key]: value });
  return workload;
}
