import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** This clone's wsk; WSK_BINARY names another one, such as OpenWhisk's own, to check the expectations against. */
export const wskBinary = process.env['WSK_BINARY'] ?? fileURLToPath(new URL('../../../bin/wsk', import.meta.url));

export interface WskResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** Also the home directory, so that no ~/.wskprops but the test's is seen. */
  directory: string;
  environment?: Record<string, string>;
  /** Ends the process with this signal as soon as `stdout` matches. */
  signalOn?: { stdout: RegExp; signal: NodeJS.Signals };
}

const timeoutMs = 20_000;

/** Runs wsk as a process with none of the caller's WHISK_ and proxy variables. */
export function runWsk(args: string[], options: RunOptions): Promise<WskResult> {
  return runBinary(wskBinary, args, options);
}

/** Runs a command as runWsk runs wsk. */
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

/** Calls `use` with a fresh folder and removes it afterwards. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'wsk-test-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
