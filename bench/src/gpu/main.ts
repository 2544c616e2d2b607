import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Measurement } from '../bench.js';
import { newCleanup, type Cleanup } from '../cleanup.js';
import { currentCommit, thisMachine, benchDir } from '../machine.js';
import { flatMetrics } from '../report.js';
import { openActivity, hasTorch, type ActivityMeter, openMachine, type GpuMachine } from './machine.js';
import { gpuParts } from './measure.js';
import { deviceName } from './sample-file.js';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const usage = [
  'Usage: npm run bench -- gpu [--simulated] [--parts A,B] [--seconds N] [--samples N] [--seed N] [--out FOLDER]',
  `  On the machine's first GPU, or (--simulated) scaled down on the stand-in. Parts: ${Object.keys(gpuParts).join(', ')}.`,
  '  A second run with the same folder measures only the missing samples.',
].join('\n');

interface GpuOptions {
  simulated: boolean;
  parts: string[];
  seconds: number;
  samples: number;
  seed: number;
  out: string | undefined;
}

/** Reads the command line. Throws RangeError, or parseArgs' TypeError, for an invalid one. */
function readOptions(args: readonly string[]): GpuOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      simulated: { type: 'boolean', default: false },
      parts: { type: 'string' },
      seconds: { type: 'string' },
      samples: { type: 'string' },
      seed: { type: 'string', default: '1' },
      out: { type: 'string' },
    },
  });
  const parts = values.parts?.split(',') ?? Object.keys(gpuParts);
  const unknown = parts.find((part) => !(part in gpuParts));
  if (unknown !== undefined) throw new RangeError(`There is no part '${unknown}'.`);
  const number = (name: string, text: string): number => {
    const value = Number(text);
    if (!(value > 0)) throw new RangeError(`--${name} takes a positive number, not '${text}'.`);
    return value;
  };
  return {
    simulated: values.simulated,
    parts,
    seconds: number('seconds', values.seconds ?? (values.simulated ? '0.15' : '1')),
    samples: number('samples', values.samples ?? (values.simulated ? '20' : '1000')),
    seed: number('seed', values.seed),
    out: values.out,
  };
}

async function openMeter(machine: GpuMachine, cleanup: Cleanup): Promise<ActivityMeter | undefined> {
  try {
    const meter = await openActivity(machine);
    cleanup.add('management library', () => meter.close());
    return meter;
  } catch (error) {
    say(`Without activity: ${(error as Error).message}`);
    return undefined;
  }
}

async function measureAll(options: GpuOptions, cleanup: Cleanup): Promise<void> {
  const temporaryDir = await mkdtemp(join(tmpdir(), 'gpuwhisk-gpu-'));
  cleanup.add('temporary folder', () => rm(temporaryDir, { recursive: true, force: true }));
  const machine = await openMachine({ ...options, temporaryDir, cleanup });
  say(
    `${machine.device}: ${machine.sms} SMs, ${machine.memoryMiB} MiB, ${machine.mps ? 'MPS' : `no MPS (${machine.mpsProblem})`}`,
  );
  const meter = await openMeter(machine, cleanup);
  // Results of the stand-in are never stored as those of a GPU.
  const folder = options.out ?? (machine.simulated ? temporaryDir : join(benchDir, 'results'));
  await mkdir(folder, { recursive: true });
  const name = `gpu-${deviceName(machine.device)}`;
  const run = {
    machine,
    temporaryDir,
    say,
    seconds: options.seconds,
    samples: options.samples,
    seed: options.seed,
    torch: await hasTorch(machine, say),
    samplesPath: join(folder, `${name}-samples.jsonl`),
    look: async () => (await meter?.look()) ?? {},
  };
  const measurements: Measurement[] = [];
  const problems: Record<string, string> = {};
  for (const part of options.parts) {
    say(part);
    try {
      measurements.push(...((await gpuParts[part]?.(run)) ?? []));
    } catch (error) {
      // Continues with the other parts, since machines with a GPU are rare.
      problems[part] = (error as Error).message;
      say(`  failed: ${(error as Error).stack}`);
    }
  }
  const { seconds, samples, seed } = options;
  const flags = [
    ...(machine.simulated ? ['--simulated'] : []),
    '--seconds',
    seconds,
    '--samples',
    samples,
    '--seed',
    seed,
  ];
  const result = {
    bench: 'gpu',
    commit: await currentCommit(),
    machine: thisMachine(),
    device: machine.device,
    sms: machine.sms,
    memoryMiB: machine.memoryMiB,
    driver: meter?.driver ?? 'unknown',
    mps: machine.mps,
    ...(machine.mpsProblem !== undefined && { mpsProblem: machine.mpsProblem }),
    torch: run.torch,
    simulated: machine.simulated,
    command: `npm run bench -- gpu ${flags.join(' ')}`,
    seed,
    ...(Object.keys(problems).length > 0 && { problems }),
    metrics: flatMetrics(measurements),
  };
  const line = JSON.stringify(result);
  await writeFile(join(folder, `${name}.json`), `${line}\n`);
  process.stdout.write(`${line}\n`);
  if (Object.keys(problems).length > 0) throw new Error(`failed: ${Object.keys(problems).join(', ')}`);
}

/** Runs the benchmark of a GPU. Exit status: 0, 1 for a failure, 2 for a wrong command line. */
export async function runGpuBench(args: readonly string[]): Promise<number> {
  let options: GpuOptions;
  try {
    options = readOptions(args);
  } catch (error) {
    say(`${(error as Error).message}\n${usage}`);
    return 2;
  }
  const cleanup = newCleanup(say);
  const stop = (): void => void cleanup.run().then(() => process.exit(1));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    await measureAll(options, cleanup);
    return 0;
  } catch (error) {
    say(`The benchmark failed: ${(error as Error).message}`);
    return 1;
  } finally {
    await cleanup.run();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await runGpuBench(process.argv.slice(2));
}
