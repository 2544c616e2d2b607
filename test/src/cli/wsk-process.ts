import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * This clone's wsk, or the one that WSK_BINARY names. With OpenWhisk's own wsk, a run checks the expectations
 * themselves.
 */
export const wskBinary = process.env['WSK_BINARY'] ?? fileURLToPath(new URL('../../../bin/wsk', import.meta.url));

export interface WskResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** Working and home directory: wsk reads the test's .wskprops only. */
  directory: string;
  environment?: Record<string, string>;
  /** Sends the signal to the process as soon as `stdout` matches. */
  signalOn?: { stdout: RegExp; signal: NodeJS.Signals };
}

const timeoutMs = 20_000;

/** Runs wsk as a process, without the WHISK_ and proxy variables of the environment. */
export function runWsk(args: string[], options: RunOptions): Promise<WskResult> {
  return runBinary(wskBinary, args, options);
}

/** Runs another command in the way of runWsk. */
export async function runBinary(binary: string, args: string[], options: RunOptions): Promise<WskResult> {
  const child = spawn(binary, args, {
    cwd: options.directory,
    env: { PATH: process.env['PATH'], HOME: options.directory, TZ: 'UTC', ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  let stdout = '';
  let stderr = '';
  let signalled = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (options.signalOn?.stdout.test(stdout) && !signalled) {
      signalled = true;
      child.kill(options.signalOn.signal);
    }
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** Calls `use` with an empty folder and removes the folder afterwards. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'wsk-test-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
