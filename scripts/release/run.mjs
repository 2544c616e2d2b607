// Programs that a release is made with.
import { spawnSync } from 'node:child_process';

const timeoutMs = 600_000;

/** Runs a program and returns its output. Throws an Error with its complaint if it fails or takes longer than ten minutes. */
export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: timeoutMs,
    maxBuffer: 2 ** 26,
    ...options,
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr?.trim() || error?.message}`);
  return stdout;
}
