import type { Config } from '../config.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { ActionLimits } from './action.js';
import type { UserLimits } from './identity.js';
import { MalformedError, asObject } from './malformed.js';

/** The limits of a PUT: only those that the caller named. */
export type LimitsPatch = Partial<ActionLimits>;

/** A closed range, and where its ends are set, as messages name it. */
interface Range {
  min: number;
  max: number;
  minSetBy: string;
  maxSetBy: string;
}

/** A largest number of bytes, and where it is set, as messages name it; absent: it is fixed. */
export interface ByteBound {
  bytes: number;
  setBy?: string;
}

/** The name of a setting of the platform, as messages about its limit name it. */
export function settingNamed(name: `limits.${keyof Config['limits']}` | keyof Config): string {
  return `setting: ${name}`;
}

/** The name of a namespace's own limit, as messages about it name it. */
const ownLimit = (name: keyof UserLimits): string => `limit of the namespace: ${name}`;

/** Where a limit is set that a namespace may have in place of the platform's, whether larger or not. */
export function whoSets(
  own: UserLimits,
  name: 'invocationsPerMinute' | 'concurrentInvocations' | 'firesPerMinute',
): string {
  return own[name] === undefined ? settingNamed(`limits.${name}`) : ownLimit(name);
}

/** What a namespace's actions may ask for: its own limits, capped by the system's. */
export interface LimitBounds {
  timeoutMs: Range;
  memoryMiB: Range;
  logsMiB: Range;
  concurrency: Range;
  /** Largest `instances`: the namespace's concurrent invocations. */
  maxInstances: number;
  instancesSetBy: string;
  maxParameters: ByteBound;
  maxPayload: ByteBound;
}

/** The settings that bound time and memory of actions: those of actions with annotation `gpu` are others. */
export interface BoundNames {
  maxTimeoutMs: 'maxTimeoutMs' | 'gpuMaxTimeoutMs';
  maxMemoryMiB: 'maxMemoryMiB' | 'gpuMaxMemoryMiB';
}

const usualNames: BoundNames = { maxTimeoutMs: 'maxTimeoutMs', maxMemoryMiB: 'maxMemoryMiB' };

type NumberLimit = Extract<keyof UserLimits, `${'min' | 'max'}Action${'Timeout' | 'Memory' | 'Logs' | 'Concurrency'}`>;
type NumberSetting = Extract<
  keyof Config['limits'],
  `${'min' | 'max' | 'gpuMax'}${'TimeoutMs' | 'MemoryMiB' | 'LogsMiB' | 'Concurrency'}`
>;

/** The range between two settings, within which a namespace may have narrower limits of its own. */
function capped(
  system: Config['limits'],
  own: UserLimits,
  [minSetting, maxSetting]: [NumberSetting, NumberSetting],
  [minName, maxName]: [NumberLimit, NumberLimit],
): Range {
  const [least, most] = [system[minSetting], system[maxSetting]];
  const [ownLeast = least, ownMost = most] = [own[minName], own[maxName]];
  return {
    min: Math.max(ownLeast, least),
    max: Math.min(ownMost, most),
    minSetBy: ownLeast > least ? ownLimit(minName) : settingNamed(`limits.${minSetting}`),
    maxSetBy: ownMost < most ? ownLimit(maxName) : settingNamed(`limits.${maxSetting}`),
  };
}

function cappedBytes(own: string | undefined, systemBytes: number): number {
  const bytes = own === undefined ? undefined : parseByteSize(own);
  return Math.min(bytes ?? systemBytes, systemBytes);
}

/** How long a result may be, and how much is kept of one that is longer. */
export interface ResultBounds {
  maxResultBytes: number;
  truncationBytes: number;
}

/** The bounds on results of a namespace whose limits document is `own` (OpenWhisk's UserLimits.allowedTruncationSize). */
export function resultBoundsFor(system: ResultBounds, own: UserLimits): ResultBounds {
  return {
    maxResultBytes: cappedBytes(own.maxPayloadSize, system.maxResultBytes),
    truncationBytes: cappedBytes(own.truncationSize, system.truncationBytes),
  };
}

function byteBound(
  own: UserLimits,
  name: 'maxParameterSize' | 'maxPayloadSize',
  system: Config['limits'],
  setting: 'maxParametersBytes' | 'maxPayloadBytes',
): ByteBound {
  const bytes = cappedBytes(own[name], system[setting]);
  return { bytes, setBy: bytes < system[setting] ? ownLimit(name) : settingNamed(`limits.${setting}`) };
}

/** The largest payload of a namespace whose limits document is `own`: of its bounds what every invocation asks for. */
export function maxPayloadFor(system: Config['limits'], own: UserLimits): ByteBound {
  return byteBound(own, 'maxPayloadSize', system, 'maxPayloadBytes');
}

/** The largest code of an action, as its own bytes: those of an archive, not of its base64. */
export function maxCodeFor({ maxCodeBytes }: Config['limits']): ByteBound {
  return { bytes: maxCodeBytes, setBy: settingNamed('limits.maxCodeBytes') };
}

/** The largest body with `lists` lists of parameters. */
export function parametersBound({ maxParametersBytes }: Config['limits'], lists: number): ByteBound {
  return { bytes: lists * maxParametersBytes, setBy: settingNamed('limits.maxParametersBytes') };
}

/** The bounds for a namespace whose limits document is `own`. */
export function boundsFor(system: Config['limits'], own: UserLimits, names: BoundNames = usualNames): LimitBounds {
  const { maxTimeoutMs, maxMemoryMiB } = names;
  return {
    timeoutMs: capped(system, own, ['minTimeoutMs', maxTimeoutMs], ['minActionTimeout', 'maxActionTimeout']),
    memoryMiB: capped(system, own, ['minMemoryMiB', maxMemoryMiB], ['minActionMemory', 'maxActionMemory']),
    logsMiB: capped(system, own, ['minLogsMiB', 'maxLogsMiB'], ['minActionLogs', 'maxActionLogs']),
    concurrency: capped(
      system,
      own,
      ['minConcurrency', 'maxConcurrency'],
      ['minActionConcurrency', 'maxActionConcurrency'],
    ),
    maxInstances: own.concurrentInvocations ?? system.concurrentInvocations,
    instancesSetBy: whoSets(own, 'concurrentInvocations'),
    maxParameters: byteBound(own, 'maxParameterSize', system, 'maxParametersBytes'),
    maxPayload: maxPayloadFor(system, own),
  };
}

/** OpenWhisk's names of the limits in the texts about malformed ones. */
const limitNames = {
  timeout: { whole: 'time limit', malformed: 'time limit' },
  memory: { whole: 'memory limit', malformed: 'memory limit' },
  logs: { whole: 'log limit', malformed: 'log limit' },
  concurrency: { whole: 'intra concurrency limit', malformed: 'concurrency limit' },
  instances: { whole: 'instance concurrency limit', malformed: 'instance concurrency limit' },
} as const;
type LimitName = keyof typeof limitNames;

function readLimit(name: LimitName, value: JsonValue): number {
  if (typeof value !== 'number') throw new MalformedError(`${limitNames[name].malformed} malformed`);
  if (!Number.isInteger(value)) {
    throw new MalformedError(`requirement failed: ${limitNames[name].whole} must be whole number`);
  }
  if (name === 'instances' && value < 0) {
    throw new MalformedError('requirement failed: Action container concurrency must be greater than or equal to 0.');
  }
  return value;
}

/** The `limits` of a PUT body. Throws MalformedError. */
export function readLimitsPatch(value: JsonValue): LimitsPatch {
  const given = asObject(value, "Object expected in field 'timeout'");
  const patch: LimitsPatch = {};
  for (const name of Object.keys(limitNames) as LimitName[]) {
    const limit = given[name];
    if (limit !== undefined && limit !== null) patch[name] = readLimit(name, limit);
  }
  return patch;
}

/** The limits of a stored action; what older documents lack has OpenWhisk's defaults. Throws MalformedError. */
export function readActionLimits(value: JsonValue | undefined): ActionLimits {
  const { timeout, memory, logs = 10, concurrency = 1, instances } = readLimitsPatch(asObject(value));
  if (timeout === undefined) throw new MalformedError("'timeout' is missing");
  if (memory === undefined) throw new MalformedError("'memory' is missing");
  return { timeout, memory, logs, concurrency, ...(instances !== undefined && { instances }) };
}

/** The limits of a new action. */
export function defaultLimits(system: Config['limits']): ActionLimits {
  return {
    timeout: system.defaultTimeoutMs,
    memory: system.defaultMemoryMiB,
    logs: system.defaultLogsMiB,
    concurrency: system.defaultConcurrency,
  };
}

/** The limits of a new action with annotation `gpu`, within `bounds`. */
export function gpuDefaultLimits(system: Config['limits'], { timeoutMs, memoryMiB }: LimitBounds): ActionLimits {
  return {
    ...defaultLimits(system),
    timeout: Math.min(system.gpuDefaultTimeoutMs, timeoutMs.max),
    memory: Math.min(system.gpuDefaultMemoryMiB, memoryMiB.max),
  };
}

/** Why the limits of a PUT are out of bounds, in OpenWhisk's words and order, and what sets them; undefined if they are not. */
export function limitsProblem(patch: LimitsPatch, bounds: LimitBounds): string | undefined {
  return (
    rangeProblem(patch.memory, bounds.memoryMiB, (value) => `memory size ${value}`, ' MB') ??
    rangeProblem(patch.timeout, bounds.timeoutMs, (value) => `duration ${value}`, ' milliseconds') ??
    rangeProblem(patch.logs, bounds.logsMiB, (value) => `log size ${value}`, ' MB') ??
    rangeProblem(patch.concurrency, bounds.concurrency, (value) => `concurrency ${value}`, '')
  );
}

function rangeProblem(
  value: number | undefined,
  { min, max, minSetBy, maxSetBy }: Range,
  subject: (value: number) => string,
  unit: string,
): string | undefined {
  if (value === undefined) return undefined;
  if (value > max) return `${subject(value)}${unit} exceeds allowed threshold of ${max}${unit} (${maxSetBy})`;
  if (value < min) return `${subject(value)}${unit} below allowed threshold of ${min}${unit} (${minSetBy})`;
  return undefined;
}

/** Why `instances` is out of bounds, in OpenWhisk's words; undefined if it is not. */
export function instancesProblem(patch: LimitsPatch, bounds: LimitBounds): string | undefined {
  const { maxInstances, instancesSetBy } = bounds;
  if (patch.instances === undefined || patch.instances <= maxInstances) return undefined;
  return `Max action instance concurrency must not exceed your namespace concurrency of ${maxInstances}. (${instancesSetBy})`;
}

/** Limits as JSON. */
export function writeLimits({ timeout, memory, logs, concurrency, instances }: ActionLimits): JsonObject {
  return { timeout, memory, logs, concurrency, ...(instances !== undefined && { instances }) };
}

const units = { B: 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 } as const;

/** `1 MB`, `512KB`, `2 G` → bytes; undefined for anything else. */
export function parseByteSize(text: string): number | undefined {
  const match = /^\s?(\d+)\s?(GB|MB|KB|B|G|M|K)\s?$/i.exec(text);
  if (match === null) return undefined;
  const unit = match[2]?.charAt(0).toUpperCase() as keyof typeof units;
  return Number(match[1]) * units[unit];
}

/** Bytes as OpenWhisk writes a size: the largest unit that leaves a whole number, `1048576` → `1 MB`. */
export function formatByteSize(bytes: number): string {
  for (const unit of ['G', 'M', 'K'] as const) {
    if (bytes >= units[unit] && bytes % units[unit] === 0) return `${bytes / units[unit]} ${unit}B`;
  }
  return `${bytes} B`;
}
