import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { guest } from '@gpuwhisk/common/entities/identity';
import type { Bench, Measurement } from '../bench.js';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../machine.js';
import { freePort } from '../servers.js';

const run = promisify(execFile);
const cloneTimeoutMs = 60_000;
const startTimeoutMs = 900_000;
const stopTimeoutMs = 20_000;
const commandTimeoutMs = 90_000;
/** Longest build behind the server, ms. */
const restTimeoutMs = 600_000;

/** `npm start` in a fresh clone of this commit: the way of a new user to the first function, and the second start. */
export const fresh: Bench = {
  summary: 'npm start in a fresh clone, to its first function; takes the network',
  parts: [],
  async run(context): Promise<Measurement[]> {
    const { temporaryDir, cleanup, say } = context;
    const clone = join(temporaryDir, 'clone');
    await run('git', ['clone', '--quiet', repositoryDir, clone], { timeout: cloneTimeoutMs });
    const first = await start(clone, temporaryDir, cleanup);
    say(`  ready after ${first.readyS.toFixed(1)} s`);
    const firstFunctionS = await firstFunction(clone, first.url);
    const restS = await untilAllIsBuilt(clone, first.readyAtMs);
    say(`  all is built ${restS.toFixed(1)} s later`);
    await first.stop();
    const again = await start(clone, temporaryDir, cleanup);
    await again.stop();
    const changed = await run('git', ['status', '--porcelain'], { cwd: clone, timeout: cloneTimeoutMs });
    if (changed.stdout !== '') throw new Error(`npm start changed files of the clone:\n${changed.stdout}`);
    return [
      { name: 'readyFreshS', value: first.readyS },
      { name: 'networkS', value: first.installedS },
      { name: 'buildS', value: first.builtS - first.installedS },
      { name: 'firstFunctionS', value: firstFunctionS },
      { name: 'restS', value: restS },
      { name: 'readyAgainS', value: again.readyS },
    ];
  },
};

/** The PATH without the Node.js that this clone fetched for itself: the fresh clone fetches its own. */
function pathOfMachine(): string {
  const own = join(repositoryDir, 'build', 'node');
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.filter((folder) => !folder.startsWith(own)).join(delimiter);
}

interface Start {
  /** Times of the lines that `npm start` prints, s after the command; 0 for a step that was not needed. */
  installedS: number;
  builtS: number;
  readyS: number;
  /** Of performance.now(). */
  readyAtMs: number;
  url: string;
  stop(): Promise<void>;
}

/** Runs `npm start` until it is ready. Rejects with what it printed if it ends before. */
async function start(clone: string, temporaryDir: string, cleanup: Cleanup): Promise<Start> {
  const inherited = Object.entries(process.env).filter(([key]) => !/^(GPUWHISK|npm)_/.test(key));
  const port = await freePort();
  const args = ['start', '--', '--port', String(port), '--data', join(temporaryDir, 'data')];
  const startedMs = performance.now();
  const child = spawn('npm', args, {
    cwd: clone,
    env: { ...Object.fromEntries(inherited), PATH: pathOfMachine(), GPUWHISK_PREPARE_RUNTIMES: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      process.kill(-child.pid, 'SIGTERM');
      const late = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), stopTimeoutMs);
      await ended;
      clearTimeout(late);
    }
  };
  cleanup.add('npm start', stop);
  const times = new Map<string, number>();
  let printed = '';
  const seen = (chunk: string): void => {
    printed += chunk;
    for (const step of ['Building', 'Starting']) {
      if (!times.has(step) && printed.includes(`\n${step} `)) times.set(step, (performance.now() - startedMs) / 1000);
    }
  };
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(`was not ready in ${startTimeoutMs / 1000} s`), startTimeoutMs);
    const fail = (how: string): void => {
      clearTimeout(timer);
      reject(new Error(`npm start ${how}:\n${printed}`));
    };
    child.once('error', ({ message }) => fail(message));
    child.once('exit', (code) => fail(`ended with ${code}`));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        seen(chunk);
        const [, url] = /is ready at (http:\S+)/.exec(printed) ?? [];
        if (url === undefined) return;
        clearTimeout(timer);
        const readyAtMs = performance.now();
        const at = (step: string): number => times.get(step) ?? 0;
        const readyS = (readyAtMs - startedMs) / 1000;
        resolve({ installedS: at('Building'), builtS: at('Starting'), readyS, readyAtMs, url, stop });
      });
    }
  });
}

/** Creates and calls the README's first function by the clone's `wsk`; seconds. */
async function firstFunction(clone: string, url: string): Promise<number> {
  const options = {
    cwd: clone,
    timeout: commandTimeoutMs,
    env: { ...process.env, WHISK_APIHOST: url, WHISK_AUTH: `${guest.uuid}:${guest.key}` },
  };
  const startedMs = performance.now();
  const wsk = join(clone, 'bin', 'wsk');
  await run(wsk, ['action', 'create', 'hello', 'examples/hello/hello.js'], options);
  const { stdout } = await run(wsk, ['action', 'invoke', 'hello', '--result', '--param', 'name', 'you'], options);
  if (!stdout.includes('Hello, you!')) throw new Error(`the first function answered ${stdout}`);
  return (performance.now() - startedMs) / 1000;
}

/** Waits for the build behind the server; its end, s after `readyAtMs`. */
async function untilAllIsBuilt(clone: string, readyAtMs: number): Promise<number> {
  while (performance.now() - readyAtMs < restTimeoutMs) {
    const stamp = JSON.parse(await readFile(join(clone, 'build', 'stamp.json'), 'utf8')) as Record<string, string>;
    if (stamp['behind'] !== undefined && stamp['behind'] === stamp['server'])
      return (performance.now() - readyAtMs) / 1000;
    await sleep(100);
  }
  throw new Error(`the build behind the server took longer than ${restTimeoutMs / 1000} s`);
}
