import { shareClasses } from '../gpu.js';
import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';
import { parseByteSize } from './limits.js';

/** Limits that a namespace may override; every field is optional. Memory in MB (MiB), times in ms. */
export interface UserLimits {
  invocationsPerMinute?: number;
  concurrentInvocations?: number;
  firesPerMinute?: number;
  allowedKinds?: string[];
  storeActivations?: boolean;
  minActionMemory?: number;
  maxActionMemory?: number;
  minActionLogs?: number;
  maxActionLogs?: number;
  minActionTimeout?: number;
  maxActionTimeout?: number;
  minActionConcurrency?: number;
  maxActionConcurrency?: number;
  maxParameterSize?: string;
  maxPayloadSize?: string;
  truncationSize?: string;
  /** These three are kept and not acted on. */
  warmedContainerKeepingCount?: number;
  warmedContainerKeepingTimeout?: string;
  maxActionInstances?: number;
  /** Ours: activations with a GPU that may be in flight, the devices and the device memory (MiB) that they ask for together. */
  concurrentGpuInvocations?: number;
  concurrentGpus?: number;
  concurrentGpuMemory?: number;
  /** Ours: seconds of whole GPUs that its functions may have in a calendar minute. */
  gpuSecondsPerMinute?: number;
  /** Ours: percent of a GPU's SMs that one run may have, 10 to 100; containers with a GPU that each invoker keeps warm. */
  maxGpuShare?: number;
  warmGpuContainers?: number;
  /** Ours: what may be stored of it, MiB: entities, code, versions, records, APIs and jobs. */
  storedMiB?: number;
}

/** Who calls, as messages carry it: one identity is one namespace with one key. */
export interface Identity {
  subject: string;
  namespace: { name: string; uuid: string };
  /** `api_key` is `uuid:key`. */
  authkey: { api_key: string };
  rights: string[];
  limits: UserLimits;
}

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
  'storedMiB',
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

/** An account with one namespace. */
interface WellKnownAccount {
  subject: string;
  namespace: string;
  uuid: string;
  /** 64 characters. */
  key: string;
}

/** OpenWhisk's well-known guest account; standalone only. */
export const guest: WellKnownAccount = {
  subject: 'guest',
  namespace: 'guest',
  uuid: '23bc46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: '123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

/** OpenWhisk's well-known system account; standalone only. */
export const whiskSystem: WellKnownAccount = {
  subject: 'whisk.system',
  namespace: 'whisk.system',
  uuid: '789c46b1-71f6-4ed5-8c54-816aa4f8c502',
  key: 'abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
};

const publishedSecrets = [guest.key, whiskSystem.key];

/** Whether the secret of a `uuid:secret` is one that OpenWhisk's sources publish. */
export function hasPublishedSecret(authkey: string): boolean {
  return publishedSecrets.includes(authkey.slice(authkey.indexOf(':') + 1));
}
