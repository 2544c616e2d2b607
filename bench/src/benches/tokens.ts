import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Share } from '@gpuwhisk/common/gpu';
import { tokenLibraryPath, TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../machine.js';
import { median } from '../statistics.js';

const device = 'GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0';
const standIn = join(repositoryDir, 'native', 'build', 'cudasim');
const rounds = 15;
const jitterClients = 32;
/** Longer than the server's history, so that it has forgotten the start of the clients. */
const jitterMs = 22_000;

const shareOf = (fraction: number, maxTokens?: number): Share => ({
  shareClass: 100,
  smRequest: fraction,
  smLimit: fraction,
  memoryMiB: 8192,
  ...(maxTokens !== undefined && { tokens: { maxTokens } }),
});

async function startServer({ temporaryDir, cleanup, say }: BenchContext, name: string): Promise<TokenServer> {
  const server = await TokenServer.start({ folder: join(temporaryDir, name), say });
  cleanup.add('token server', () => server.close());
  return server;
}

const withTokens = (server: TokenServer, share: Share): Record<string, string> => ({
  LD_PRELOAD: tokenLibraryPath,
  GPUWHISK_TOKENS_SOCKET: server.socketPath,
  GPUWHISK_TOKENS_TICKET: server.ticketFor(device, share),
});

/** Answers of two programs, one of them under tokens, to `line`; the programs take turns, one pair a round. */
async function compare(plain: LineProgram, under: LineProgram, line: string): Promise<[number, number][]> {
  const pairs: [number, number][] = [];
  for (let round = 0; round < rounds; round += 1) {
    const first = round % 2 === 0;
    const one = await (first ? plain : under).ask(line);
    const other = await (first ? under : plain).ask(line);
    const [a, b] = [one.at(-1), other.at(-1)];
    if (a === undefined || b === undefined) throw new Error(`'${line}' has an answer without numbers.`);
    pairs.push(first ? [a, b] : [b, a]);
  }
  return pairs;
}

/** `launchNs`: added time of a launch without a wait, on a driver that only counts. */
async function measureLaunch(context: BenchContext): Promise<Measurement[]> {
  const server = await startServer(context, 'launch');
  const launcher = compileLauncher(context.temporaryDir);
  const env = { LD_LIBRARY_PATH: context.temporaryDir };
  const [plain, under] = [env, { ...env, ...withTokens(server, shareOf(1)) }].map((env) =>
    startLineProgram(launcher, ['procaddress'], env, context.cleanup),
  ) as [LineProgram, LineProgram];
  for (const program of [plain, under]) await program.ask('context 0');
  const launches = 500_000;
  await compare(plain, under, `burst 1 ${launches}`);
  const pairs = await compare(plain, under, `burst 1 ${launches}`);
  await Promise.all([plain.end(), under.end(), server.close()]);
  return [
    medianOf(
      'launchNs',
      pairs.map(([without, with_]) => ((with_ - without) * 1000) / launches),
    ),
  ];
}

/**
 * `tokenUs`: from a tick to the return of a launch that waited for it. `tokenCpu`: cores that the server uses
 * meanwhile.
 */
async function measureWaits(context: BenchContext): Promise<Measurement[]> {
  const server = await startServer(context, 'waits');
  const launcher = compileLauncher(context.temporaryDir);
  const env = { LD_LIBRARY_PATH: context.temporaryDir, ...withTokens(server, shareOf(0.5, 1000)) };
  const program = startLineProgram(launcher, ['procaddress'], env, context.cleanup);
  await program.ask('context 0');
  await program.ask('waits 500 100');
  const [medians, parts]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const [median = NaN, part = NaN] = await program.ask('waits 500 100');
    medians.push(median);
    parts.push(part);
  }
  await Promise.all([program.end(), server.close()]);
  return [medianOf('tokenUs', medians), medianOf('tokenCpu', parts)];
}

/** `tickJitterMs`: deviation of the period at p99 while 32 clients launch and wait. */
async function measureJitter(context: BenchContext): Promise<Measurement[]> {
  const server = await startServer(context, 'jitter');
  const launcher = compileLauncher(context.temporaryDir);
  const programs = Array.from({ length: jitterClients }, () => {
    const env = { LD_LIBRARY_PATH: context.temporaryDir, ...withTokens(server, shareOf(0.03, 1000)) };
    return startLineProgram(launcher, ['procaddress'], env, context.cleanup);
  });
  for (const program of programs) await program.ask('context 0');
  const work = Promise.all(programs.map((program) => program.ask(`loop 10 ${jitterMs}`)));
  await sleep(jitterMs);
  const { jitterMs: jitter, scheduling, repeated, ticks } = server.figures();
  await work;
  context.say(`  ${jitterClients} clients, thread scheduled '${scheduling}', ${repeated} of ${ticks} decisions late`);
  await Promise.all([...programs.map((program) => program.end()), server.close()]);
  return [
    { name: 'tickJitterMs', value: jitter.p99, spread: [jitter.p50, jitter.max] },
    { name: 'lateDecisions', value: repeated / ticks },
  ];
}

/** Starts a daemon of the stand-in with one GPU; resolves when it is ready. */
async function startStandIn({ temporaryDir, cleanup }: BenchContext): Promise<string> {
  if (!existsSync(join(standIn, 'client')))
    throw new Error('The stand-in driver is not built: it takes a C++ compiler.');
  const socket = join(temporaryDir, 'sim');
  const child = spawn(join(standIn, 'daemon'), ['--socket', socket, '--gpus', 'a100-40x1', '--context-ms', '10'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  cleanup.add('stand-in driver', async () => {
    child.stdin.end();
    await ended;
  });
  await once(child.stdout, 'data');
  return socket;
}

/**
 * `launchLoss` and `computeLoss`: slowdown of programs under tokens that never run out. One program launches empty
 * kernels, each of which costs its caller 4 µs; the other computes for half a second at a time.
 */
async function measureLoss(context: BenchContext): Promise<Measurement[]> {
  const server = await startServer(context, 'loss');
  const socket = await startStandIn(context);
  const env = { LD_LIBRARY_PATH: standIn, GPUWHISK_SIM_SOCKET: socket };
  const start = (env: Record<string, string>): LineProgram =>
    startLineProgram(join(standIn, 'client'), [], env, context.cleanup);
  const [plain, under] = [start(env), start({ ...env, ...withTokens(server, shareOf(1)) })] as const;
  for (const program of [plain, under]) await program.ask('context');
  // Wall time; the program's other work is the same for both.
  const timed = (program: LineProgram): LineProgram => ({
    ...program,
    async ask(line) {
      const start = performance.now();
      const [result] = await program.ask(line);
      if (result !== 0) throw new Error(`The stand-in answers ${result}.`);
      return [performance.now() - start];
    },
  });
  await compare(plain, under, 'launches 2000');
  // The program's own median of a launch, which other work on the machine does not affect.
  const launches = await compare(plain, under, 'launches 20000');
  const computing = await compare(timed(plain), timed(under), 'run 100 864 5000000 0');
  const counted = server.all().map((client) => server.figuresOf(client).taken);
  if (counted.length !== 1 || counted.some((taken) => taken < rounds * 20_000))
    throw new Error(`The server has not counted all blocks: ${counted.join()}.`);
  await Promise.all([plain.end(), under.end(), server.close()]);
  const loss = (pairs: [number, number][]): number =>
    median(pairs.map(([, with_]) => with_)) / median(pairs.map(([without]) => without)) - 1;
  return [
    { name: 'launchLoss', value: loss(launches) },
    { name: 'computeLoss', value: loss(computing) },
  ];
}

const parts = { launch: measureLaunch, waits: measureWaits, jitter: measureJitter, loss: measureLoss } as const;

/** Kernel tokens: cost of interception, wake-up time of a waiting launch, and accuracy of the period. */
export const tokens: Bench = {
  summary: 'kernel tokens: cost of a launch and of a wait, accuracy of the period',
  parts: Object.keys(parts),
  async run(context) {
    const chosen = context.options.parts.length > 0 ? context.options.parts : Object.keys(parts);
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (!chosen.includes(name)) continue;
      context.say(`tokens: ${name}`);
      measurements.push(...(await measure(context)));
    }
    return measurements;
  },
};

const compileTimeoutMs = 60_000;
const answerTimeoutMs = 120_000;

/** A program that answers each line with a line. */
interface LineProgram {
  /** Sends a line; resolves with the numbers in the answer. Rejects if the program ends or takes too long. */
  ask(line: string): Promise<number[]>;
  end(): Promise<void>;
}

/** Starts a program with only `env` as its environment; cleanup ends it at the latest. */
function startLineProgram(
  path: string,
  args: readonly string[],
  env: Record<string, string>,
  cleanup: Cleanup,
): LineProgram {
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'], env });
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await closed;
  };
  cleanup.add(path, end);
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${path} does not answer '${line}'.`)), answerTimeoutMs);
      });
      const { value, done } = await Promise.race([lines.next(), late]);
      clearTimeout(timer);
      if (done === true) throw new Error(`${path} has ended at '${line}'.`);
      return String(value).split(' ').map(Number);
    },
    end,
  };
}

/** Compiles in `folder` the driver that only counts, and the program that launches on it. */
function compileLauncher(folder: string): string {
  const fixture = (name: string): string => join(repositoryDir, 'test', 'fixtures', 'tokens', name);
  const compile = (...options: string[]): Buffer =>
    execFileSync('cc', ['-O2', '-pthread', ...options], { timeout: compileTimeoutMs });
  const launcher = join(folder, 'launcher');
  compile('-fPIC', '-shared', '-Wl,-soname,libcuda.so.1', fixture('fake_cuda.c'), '-o', join(folder, 'libcuda.so.1'));
  compile(fixture('client.c'), '-o', launcher, '-ldl');
  return launcher;
}
