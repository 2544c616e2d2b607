import { shareClasses } from '../gpu.js';
import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';
import { parseByteSize } from './byte-size.js';
import type { UserLimits } from './identity.js';

const numbers = [
  'invocationsPerMinute',
  'concurrentInvocations',
  'firesPerMinute',
  'minActionMemory',
  'maxActionMemory',
  'minActionLogs',
  'maxActionLogs',
  'minActionTimeout',
  'maxActionTimeout',
  'minActionConcurrency',
  'maxActionConcurrency',
  'warmedContainerKeepingCount',
  'maxActionInstances',
  'concurrentGpuInvocations',
  'concurrentGpus',
  'concurrentGpuMemory',
  'gpuSecondsPerMinute',
  'maxGpuShare',
  'warmGpuContainers',
] as const;
const sizes = ['maxParameterSize', 'maxPayloadSize', 'truncationSize'] as const;

/** Whether `name` is that of a limit. */
export function isLimitName(name: string): name is keyof UserLimits {
  return limitNames.has(name);
}

const limitNames: ReadonlySet<string> = new Set([
  ...numbers,
  ...sizes,
  'allowedKinds',
  'storeActivations',
  'warmedContainerKeepingTimeout',
]);

function isWhole(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

/** What the limit `name` must be, where `value` is not; undefined where it is. */
export function limitProblem(name: keyof UserLimits, value: JsonValue): string | undefined {
  switch (name) {
    case 'allowedKinds':
      return Array.isArray(value) && value.every((kind) => typeof kind === 'string') ? undefined : 'a list of kinds';
    case 'storeActivations':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'warmedContainerKeepingTimeout':
      return typeof value === 'string' ? undefined : "a time such as '5 minutes'";
    case 'maxParameterSize':
    case 'maxPayloadSize':
    case 'truncationSize':
      return typeof value === 'string' && parseByteSize(value) !== undefined ? undefined : "a size such as '1 MB'";
    case 'maxGpuShare':
      return isWhole(value) && value >= shareClasses[0] && value <= 100
        ? undefined
        : `a whole number of percent from ${shareClasses[0]} to 100`;
    default:
      return isWhole(value) ? undefined : 'a whole number';
  }
}

/** A namespace's limits from its limits document; one that cannot be understood counts as none, as in OpenWhisk. */
export function readUserLimits(document: JsonValue | undefined): UserLimits {
  if (!isJsonObject(document)) return {};
  const limits: UserLimits = {};
  for (const name of numbers) {
    const value = document[name] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== 'number' || !Number.isInteger(value)) return {};
    limits[name] = value;
  }
  for (const name of sizes) {
    const value = document[name] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== 'string' || parseByteSize(value) === undefined) return {};
    limits[name] = value;
  }
  const { allowedKinds, storeActivations, warmedContainerKeepingTimeout } = document;
  if (Array.isArray(allowedKinds)) limits.allowedKinds = allowedKinds.filter((kind) => typeof kind === 'string');
  if (typeof storeActivations === 'boolean') limits.storeActivations = storeActivations;
  if (typeof warmedContainerKeepingTimeout === 'string') {
    limits.warmedContainerKeepingTimeout = warmedContainerKeepingTimeout;
  }
  return limits;
}
