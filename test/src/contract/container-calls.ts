import type { JsonObject } from '@gpuwhisk/common/json';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type {
  CallLimits,
  ContainerSpec,
  InitRequest,
  RunRequest,
} from '@gpuwhisk/invoker/containers/container-factory';

/** The kind that guest-program.ts implements. */
export const kind = 'test:1';
export const spec: ContainerSpec = bareSpec(kind, 256);
const MiB = 1024 * 1024;
export const limits: CallLimits = {
  timeoutMs: 20_000,
  logLimitBytes: MiB,
  maxResultBytes: MiB,
  truncationBytes: MiB,
};

/** An `/init` value with `code`. */
export function initRequest(code = ''): InitRequest {
  return { name: 'a', main: 'main', code, binary: false, env: {} };
}

/** A `/run` body with `value`. */
export function runRequest(value: JsonObject): RunRequest {
  return {
    value,
    namespace: 'guest',
    action_name: '/guest/a',
    action_version: '0.0.1',
    activation_id: '0'.repeat(32),
    transaction_id: 't',
    deadline: '0',
  };
}
