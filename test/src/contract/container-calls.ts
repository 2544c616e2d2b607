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

/** A script for the guest that leaves 1,000 busy processes behind, whose first argument is `mark`. Requires Perl. */
export function busyScript(mark: string): string {
  // The first ones wait for the last.
  const forks = `pipe my $read, my $write; for (1 .. 999) { my $pid = fork // last;
    if ($pid == 0) { close $write; sysread $read, my $got, 1; 1 while 1; } } close $write; 1 while 1;`;
  return `require('fs').writeFileSync('/action/${mark}', ${JSON.stringify(forks)});
    spawn('/usr/bin/perl', ['${mark}'], { cwd: '/action', detached: true }); return 0;`;
}

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
