import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, type Api, type Family } from './api.js';
import type { BenchContext, Measurement } from './bench.js';
import type { Cleanup } from './cleanup.js';
import { benchDir, repositoryDir } from './machine.js';

/** A server that a bench started. */
export interface Server {
  url: string;
  pid: number;
  /** From the start of the process to the line that names the URL, ms. */
  listeningMs: number;
  /** The last 20,000 characters of its output. */
  output(): string;
  /** Sends SIGTERM, and SIGKILL to its process group if it has not ended after 20 s. May be called twice. */
  stop(): Promise<void>;
}

/** Certificates that a host adds: every Node.js process parses them at its start, for longer than the rest of it takes. */
const hostCertificates = 'NODE_EXTRA_CA_CERTS';
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;

/** Starts bench/reference.mjs. */
export function startReference(cleanup: Cleanup): Promise<Server> {
  return startServer('reference server', cleanup, [join(benchDir, 'reference.mjs')], {});
}

/** Starts bench/floor.mjs with functions in one language. */
export function startFloor(cleanup: Cleanup, family: Family): Promise<Server> {
  return startServer('floor server', cleanup, [join(benchDir, 'floor.mjs'), family], {});
}

/** Settings of a platform for a bench. */
interface PlatformSettings {
  dataDir: string;
  /** Default: a free port. */
  port?: number;
  stemCells?: boolean;
  /** `GPUWHISK_*` settings on top of benchSettings. */
  environment?: Readonly<Record<string, string>>;
  /** Flags for Node itself. */
  nodeFlags?: readonly string[];
}

/**
 * By default the guest may have 1,000 activations under way and a million a minute. Benches must reach the queue's
 * bound of 10,000 first. These flags remove the guest's own limits, and benchSettings raises the system's.
 */
const benchFlags = ['--limits', 'openwhisk'];
const benchSettings = {
  GPUWHISK_LIMITS__CONCURRENT_INVOCATIONS: '1000000',
  GPUWHISK_LIMITS__INVOCATIONS_PER_MINUTE: '1000000000',
  GPUWHISK_LIMITS__FIRES_PER_MINUTE: '1000000000',
  GPUWHISK_PREPARE_RUNTIMES: 'false',
};

/** Starts the platform and resolves once it listens. Throws with the end of its output if it fails to start. */
export function startPlatform(cleanup: Cleanup, settings: PlatformSettings): Promise<Server> {
  const args = [
    ...(settings.nodeFlags ?? []),
    // The value of package.json's start script.
    '--max-semi-space-size=16',
    join(repositoryDir, 'scripts', 'serve.cjs'),
    '--port',
    String(settings.port ?? 0),
    '--data',
    settings.dataDir,
    ...benchFlags,
    ...(settings.stemCells === false ? ['--stem-cells', 'false'] : []),
  ];
  return startServer('platform', cleanup, args, { ...benchSettings, ...settings.environment });
}

async function startServer(
  name: string,
  cleanup: Cleanup,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<Server> {
  const inherited = Object.entries(process.env).filter(
    ([key]) => !key.startsWith('GPUWHISK_') && key !== hostCertificates,
  );
  const startedMs = performance.now();
  // Puts the server into a process group of its own. Ctrl-C then reaches only this process, which stops the servers in
  // order.
  const child = spawn(process.execPath, [...args], {
    cwd: repositoryDir,
    env: { ...Object.fromEntries(inherited), ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`The ${name} cannot be started.`);
  const stop = (): Promise<void> => stopProcess(child, pid);
  cleanup.add(name, stop);
  let output = '';
  const heard = (chunk: string): string => (output = (output + chunk).slice(-20_000));
  const url = await listeningUrl(name, child, heard);
  return { url, pid, listeningMs: performance.now() - startedMs, output: () => output, stop };
}

/** The first URL that a server prints. `heard` takes further output and gives the last part of all of it. */
function listeningUrl(name: string, child: ChildProcess, heard: (chunk: string) => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail('does not listen'), startTimeoutMs);
    const fail = (what: string): void => {
      clearTimeout(timer);
      reject(new Error(`The ${name} ${what}: ${heard('').slice(-2000)}`));
    };
    const read = (chunk: Buffer): void => {
      // The last part of the output explains a failed start.
      const url = heard(chunk.toString()).match(/http:\/\/127\.0\.0\.1:\d+(?=\D)/)?.[0];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', (error) => fail(`cannot be started (${error.message})`));
    child.once('exit', (code, signal) => fail(`ended with ${signal ?? code}`));
  });
}

async function stopProcess(child: ChildProcess, pid: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = new AbortController();
  const late = sleep(stopTimeoutMs, 'late', { signal: timer.signal }).catch(() => 'ended');
  const outcome = await Promise.race([ended.then(() => 'ended'), late]);
  timer.abort();
  if (outcome === 'ended') return;
  process.kill(-pid, 'SIGKILL');
  await ended;
  throw new Error(`it ignored SIGTERM for ${stopTimeoutMs} ms and was killed`);
}

/** A port that was free at the time of the call. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}

/** The platform of a part and a client of it. */
export interface PartPlatform {
  platform: Server;
  api: Api;
}

/**
 * Runs the chosen parts, each on a platform of its own, so that one part's containers and records do not affect the
 * next. `surroundings` makes from the platform the argument of the parts.
 */
export async function runParts<Given>(
  context: BenchContext,
  parts: Readonly<Record<string, (context: BenchContext, given: Given) => Promise<Measurement[]>>>,
  surroundings: (own: PartPlatform) => Given,
): Promise<Measurement[]> {
  const { options, cleanup, temporaryDir, say } = context;
  const measurements: Measurement[] = [];
  for (const [name, measure] of Object.entries(parts)) {
    if (options.parts.length > 0 && !options.parts.includes(name)) continue;
    say(`Part ${name}`);
    const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, name) });
    const api = connectApi(platform.url);
    cleanup.add('connection', () => api.close());
    measurements.push(...(await measure(context, surroundings({ platform, api }))));
    api.close();
    await platform.stop();
  }
  return measurements;
}
