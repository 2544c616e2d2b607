import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiClient } from './api-client.js';

const main = fileURLToPath(new URL('../../../scripts/serve.cjs', import.meta.url));
const startMs = 60_000;
const stopMs = 20_000;

/** Platforms that run. Those of a test that has failed end soon after its file; Jest would wait for them for ever. */
const running = new Set<ChildProcess>();
/** Time for the file's own afterAll, which comes after the one here and stops platforms, ms. */
const leftMs = 2 * stopMs;
let killer: NodeJS.Timeout | undefined;
// Programs outside of Jest import this file, too.
const { afterAll } = globalThis as { afterAll?: (work: () => void) => void };
afterAll?.(() => {
  if (running.size === 0) return;
  killer = setTimeout(() => {
    for (const child of running) child.kill('SIGKILL');
  }, leftMs);
});

/** The platform, started as a user starts it: in a process of its own, on a free port. */
export interface RunningPlatform {
  url: string;
  /** Origin of the console and the documentation; empty if they are off. */
  consoleUrl: string;
  /** `uuid:key` of the guest, as the platform printed it. */
  auth: string;
  /** `uuid:secret` of the operator, as the platform's data folder has it. */
  operatorAuth: string;
  pid: number;
  dataDir: string;
  api: ApiClient;
  /** Output of the platform on stdout and stderr until now. */
  output(): string;
  /** Sends the signal and resolves with the exit code once the process has ended; null if the signal ended it. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /**
   * Ctrl-C in a terminal under npm: SIGINT to the platform's process group, and a second one to the platform itself.
   * The platform must lead its group (`leadsSession`).
   */
  interrupt(): Promise<number | null>;
  /** Ends the platform in good order and removes its data; rejects if the exit code is not 0. */
  stop(): Promise<void>;
}

export interface PlatformOptions {
  /** Default: a new folder. */
  dataDir?: string;
  flags?: string[];
  /** Further environment variables. */
  env?: Record<string, string>;
  /** A command before the platform's, which starts it: `unshare -m`. */
  before?: string[];
  /** Whether it starts as a service does, in a session of its own. */
  leadsSession?: boolean;
}

/** Exit of a process that did not become a platform, or was stopped before. */
export interface FailedStart {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A new folder for a platform's data. */
export function newDataDir(): string {
  const folder = join(mkdtempSync(join(tmpdir(), 'gpuwhisk-platform-')), 'data');
  // Tests that put something there before the start find it closed to other users.
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/** Removes a folder that newDataDir made. */
export function removeDataDir(dataDir: string): void {
  rmSync(join(dataDir, '..'), { recursive: true, force: true });
}

function launch({ dataDir = newDataDir(), flags = [], before = [], leadsSession = false, env: more }: PlatformOptions) {
  // Leaves out Jest's options and settings of the user who runs the tests.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GPUWHISK_'));
  const env = { ...Object.fromEntries(inherited), NODE_OPTIONS: '', GPUWHISK_PREPARE_RUNTIMES: 'false', ...more };
  const [program = '', ...args] = [
    ...before,
    process.execPath,
    main,
    '--port',
    '0',
    '--data',
    dataDir,
    '--set',
    'fetchRuntimes=false',
    // Functions of tests load no framework, and many of them shall fit on a small machine.
    '--set',
    'limits.gpuDefaultMemoryMiB=256',
    ...flags,
  ];
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: leadsSession,
    env,
  });
  const printed = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed.stderr += text));
  running.add(child);
  const exited = new Promise<number | null>((resolve, reject) => {
    child.on('exit', () => {
      running.delete(child);
      if (running.size === 0) clearTimeout(killer);
    });
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { child, dataDir, printed, exited };
}

/** Starts a platform and waits until it is ready. */
export async function startPlatform(options: PlatformOptions = {}): Promise<RunningPlatform> {
  const { child, dataDir, printed, exited } = launch(options);
  const everything = (): string => printed.stdout + printed.stderr;
  const [, url = '', auth = ''] = await new Promise<RegExpExecArray>((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer);
      reject(new Error(`The platform ${why}:\n${everything()}`));
    };
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(`was not ready within ${startMs} ms`);
    }, startMs);
    exited.then(
      (code) => fail(`ended with ${code}`),
      (error: unknown) => fail(`could not be started: ${String(error)}`),
    );
    child.stdout.on('data', () => {
      const ready = /wsk --apihost (\S+) --auth (\S+)[^]*stops\.\n/.exec(printed.stdout);
      if (!ready) return;
      clearTimeout(timer);
      resolve(ready);
    });
  });
  const ended = async (): Promise<number | null> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
    const code = await exited;
    clearTimeout(timer);
    return code;
  };
  const end = (signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> => {
    child.kill(signal);
    return ended();
  };
  return {
    url,
    consoleUrl: /console is at (\S+)\/console\b/.exec(printed.stdout)?.[1] ?? '',
    auth,
    operatorAuth: readFileSync(join(dataDir, 'operator.key'), 'utf8').trim(),
    pid: child.pid ?? 0,
    dataDir,
    api: new ApiClient(url, auth),
    output: everything,
    end,
    interrupt() {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
      child.kill('SIGINT');
      return ended();
    },
    async stop() {
      const code = await end('SIGTERM');
      removeDataDir(dataDir);
      if (code !== 0) throw new Error(`The platform stopped with ${code}:\n${everything()}`);
    },
  };
}

/** Starts a platform that is expected to refuse, and resolves with its exit. */
export function startAndFail(options: PlatformOptions): Promise<FailedStart> {
  return endOf(launch(options));
}

/** Starts a platform, stops it as soon as it has taken its data folder, and resolves with its exit. */
export async function stopDuringStart(dataDir: string): Promise<FailedStart> {
  const launched = launch({ dataDir });
  const ended = endOf(launched);
  await until('the data folder is taken', () => existsSync(join(dataDir, 'server.lock')), startMs);
  launched.child.kill('SIGINT');
  return ended;
}

async function endOf({ child, printed, exited }: ReturnType<typeof launch>): Promise<FailedStart> {
  const timer = setTimeout(() => child.kill('SIGKILL'), startMs);
  const code = await exited;
  clearTimeout(timer);
  return { code, ...printed };
}

/**
 * Waits until `condition` holds, and resolves with the waiting time, ms. Fails after `withinMs` with a message that
 * names `what`.
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<number> {
  const beganMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - beganMs > withinMs) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
  return performance.now() - beganMs;
}
