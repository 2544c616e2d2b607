import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { WorkerError, type GpuWorker } from '../../gpu/gpu-worker.js';
import type { GpuMachine } from '../../gpu/machine.js';
import { runStage, type StageGiven, type StageResult } from '../../gpu/stage.js';
import { heldEnvironment, TokenTrial, type Shares } from '../../gpu/token-trial.js';
import { flatMetrics } from '../../report.js';

/** Ways to launch kernels: their names in the metrics, and workloads. */
const torchWays: Ways = [
  ['eager', 'eager:8'],
  ['graph', 'graph:8'],
  ['cublas', 'cublas:4096'],
  ['triton', 'triton:64'],
];
const driverWays: Ways = [['driver', 'matmul:1536']];

/** The token server's only device. */
const device = 'GPU-00000000-0000-0000-0000-000000000000';
/** The shares that two processes hold at once, and how far they may miss them. */
const shares: Shares = [0.3, 0.7];
const mostError = 0.05;

const rounds = 7;
/** Times on a device and on the stand-in, s: of a round, of processes beside each other, and of a change of shares. */
const deviceTimes = { round: 0.2, beside: 0.5, change: 3 };
const simulatedTimes = { round: 0.1, beside: 0.5, change: 3 };

/**
 * Measures what kernel tokens cost a program that has the whole device, for each way to launch kernels; whether two
 * processes hold 0.3 and 0.7 of the rate of one alone; and how soon a change of shares holds.
 */
export function measureTokens(given: StageGiven): Promise<StageResult> {
  return runStage(given, async (machine, { signal }, result) => {
    const folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-tokens-'));
    const workers: GpuWorker[] = [];
    let server: TokenServer | undefined;
    try {
      server = await TokenServer.start({ folder, addonPath: join(given.native, 'tokens.node'), say: given.say });
      const plain = await startPlain(machine, given.say);
      workers.push(plain.worker);
      const trial = await openTrial(given, machine, server, plain, workers);
      await measureWays(trial, plain.ways, signal, given, result);
    } catch (error) {
      if (!(error instanceof WorkerError)) throw error;
      result.failures.push(
        signal.aborted
          ? `The tokens were not measured whole within ${given.budgetMs} ms.`
          : `The processes under tokens do not run: ${error.message}.`,
      );
    } finally {
      await Promise.all(workers.map((worker) => worker.end()));
      await server?.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
}

type Ways = readonly (readonly [string, string])[];

/** A process without tokens, and the workloads that it has. */
interface Plain {
  kind: 'torch' | 'driver';
  ways: Ways;
  worker: GpuWorker;
}

/** Starts a process with PyTorch if it is there. PyTorch does not run on the stand-in. */
async function startPlain(machine: GpuMachine, say: (line: string) => void): Promise<Plain> {
  if (!machine.simulated) {
    try {
      return { kind: 'torch', ways: torchWays, worker: await machine.start('torch') };
    } catch (error) {
      if (!(error instanceof WorkerError)) throw error;
      say(`Without PyTorch: ${error.message}`);
    }
  }
  return { kind: 'driver', ways: driverWays, worker: await machine.start('driver') };
}

/** Starts the two processes under tokens; those that have started are added to `workers`, also if the other fails. */
async function openTrial(
  { native, simulated }: StageGiven,
  machine: GpuMachine,
  server: TokenServer,
  plain: Plain,
  workers: GpuWorker[],
): Promise<TokenTrial> {
  const { memoryMiB } = machine;
  const library = join(native, 'tokens/libgpuwhisk-tokens.so');
  const start = async (): Promise<GpuWorker> => {
    const worker = await machine.start(plain.kind, { more: heldEnvironment(server, { device, library, memoryMiB }) });
    workers.push(worker);
    return worker;
  };
  const startedOf = (each: PromiseSettledResult<GpuWorker>): GpuWorker => {
    if (each.status === 'rejected') throw each.reason;
    return each.value;
  };
  const [one, other] = await Promise.allSettled([start(), start()]);
  const three = { plain: plain.worker, held: [startedOf(one), startedOf(other)] as const };
  const [[, workload = ''] = []] = plain.ways;
  return TokenTrial.open(server, workload, three, simulated ? simulatedTimes : deviceTimes);
}

/** Measures each way, then a change of shares with the last one. The summary has the ways that were measured. */
async function measureWays(
  trial: TokenTrial,
  ways: Ways,
  signal: AbortSignal,
  { say }: StageGiven,
  { metrics, failures }: StageResult,
): Promise<void> {
  const overheads: number[] = [];
  const held: Shares[] = [];
  const add = (name: string, value: number): void => void Object.assign(metrics, flatMetrics([{ name, value }]));
  const addShares = (found: Shares, suffix = ''): void =>
    shares.forEach((share, i) => add(`tokenShare.${Math.round(100 * share)}${suffix}`, found[i] ?? NaN));
  /** The blocks of a period alone, or undefined if none were counted. */
  const measure = async (name: string, workload: string): Promise<number | undefined> => {
    await trial.load(workload);
    const { overhead, blocks } = await trial.overhead(rounds);
    overheads.push(overhead);
    add(`tokenOverhead.${name}`, overhead);
    add('tokenOverhead', Math.max(...overheads));
    if (!(blocks > 0)) {
      failures.push(`The interception library counted no blocks of '${name}'.`);
      return undefined;
    }
    const found = await trial.beside(shares, blocks);
    held.push(found);
    addShares(found, `.${name}`);
    addShares([farthest(held, 0), farthest(held, 1)]);
    const text = found.map((share) => share.toFixed(3)).join(' and ');
    say(`  ${name}: overhead ${(100 * overhead).toFixed(2)} %, shares ${text}`);
    if (missOf(found, 0) > mostError || missOf(found, 1) > mostError) {
      failures.push(`Two processes of '${name}' held ${text} of the rate alone, not ${shares.join(' and ')}.`);
    }
    return blocks;
  };
  let last: { name: string; workload: string; blocks: number } | undefined;
  for (const [name, workload] of ways) {
    try {
      const blocks = await measure(name, workload);
      if (blocks !== undefined) last = { name, workload, blocks };
    } catch (error) {
      if (!(error instanceof WorkerError) || signal.aborted) throw error;
      failures.push(`'${name}' could not be measured: ${error.message}.`);
    }
  }
  if (last === undefined) return;
  await trial.load(last.workload);
  const reshareMs = await trial.change(shares, last.blocks, mostError);
  if (reshareMs !== undefined) add('tokenReshareMs', reshareMs);
  else failures.push(`A change of shares did not hold in any 100 ms of '${last.name}'.`);
}

const missOf = (found: Shares, i: 0 | 1): number => Math.abs(found[i] - shares[i]);

/** The share of one process that is farthest from its limit. */
const farthest = (held: readonly Shares[], i: 0 | 1): number =>
  [...held].sort((a, b) => missOf(b, i) - missOf(a, i))[0]?.[i] ?? NaN;
