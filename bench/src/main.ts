import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missedBars } from './bars.js';
import { benches } from './benches.js';
import { newCleanup, type Cleanup } from './cleanup.js';
import { BenchDataError } from './data/csv.js';
import { runGpuBench } from './gpu/main.js';
import { chooseLoad } from './load/wrk.js';
import { writeFigures } from './documents/figures.js';
import { currentCommit, thisMachine, benchDir } from './machine.js';
import { commandLine, parseOptions, UsageError, type Options } from './options.js';
import { flatMetrics, formatTable, resultName, type Result } from './report.js';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

function usage(): string {
  const names = Object.entries(benches).map(
    ([name, { summary, parts }]) =>
      `  ${name.padEnd(10)} ${summary}${parts.length > 1 ? ` (parts: ${parts.join(', ')})` : ''}`,
  );
  return [
    'Usage: npm run bench -- NAME [--check] [--parts A,B] [--rounds N] [--seconds N] [--samples N]',
    '         [--idle-seconds N] [--load-seconds N] [--calls N] [--seed N] [--client auto|wrk|autocannon]',
    "         [--beside NAME=URL [--beside-method NAME=GET] [--beside-header 'NAME=Header: value'] [--beside-body NAME=TEXT]",
    '           [--beside-server NAME=PID,...] [--beside-functions NAME=PID,...]] [--gpu-samples FILE]',
    ...names,
    '  gpu        a GPU, with flags of its own (npm run bench -- gpu --help)',
    '  figures    writes the figures of bench/results into the documents; a full run of a bench also does this',
  ].join('\n');
}

async function runBench(options: Options, cleanup: Cleanup): Promise<Result> {
  const bench = benches[options.bench];
  if (!bench) throw new UsageError(`There is no bench '${options.bench}'.`);
  const unknown = options.parts.find((part) => !bench.parts.includes(part));
  if (unknown !== undefined) throw new UsageError(`Bench '${options.bench}' has no part '${unknown}'.`);

  const temporaryDir = await mkdtemp(join(tmpdir(), 'gpuwhisk-bench-'));
  cleanup.add('temporary folder', () => rm(temporaryDir, { recursive: true, force: true }));
  const load = await chooseLoad(options.client, temporaryDir, cleanup);
  say(`Load generator: ${load.name}`);
  let simulated = bench.simulated ?? false;
  const markSimulated = (): void => void (simulated = true);
  const measurements = await bench.run({ options, load, cleanup, temporaryDir, say, markSimulated });
  process.stdout.write(`${formatTable(options.bench, measurements)}\n`);
  return {
    bench: resultName(options),
    commit: await currentCommit(),
    date: new Date().toISOString().slice(0, 10),
    machine: thisMachine(),
    simulated,
    command: commandLine({ ...options, client: load.name.startsWith('wrk') ? 'wrk' : 'autocannon' }),
    seed: options.seed,
    metrics: flatMetrics(measurements),
  };
}

/** Runs a bench. Exit status: 0, 1 for a failure or a missed bar under --check, 2 for an invalid command line. */
async function main(): Promise<number> {
  const cleanup = newCleanup(say);
  const stop = (): void => void cleanup.run().then(() => process.exit(1));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  // A closed pipe (`| head`) must not prevent cleanup.
  process.stdout.on('error', (error) => say(`Cannot print: ${error.message}`));
  process.once('uncaughtException', (error) => {
    say(`The benchmark failed: ${error.stack ?? error.message}`);
    stop();
  });
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options.beside.length > 0 && options.bench !== 'invoke') throw new UsageError('--beside is for bench invoke.');
    if (options.gpuSamples !== undefined && (options.bench !== 'predictor' || options.parts.length > 0))
      throw new UsageError('--gpu-samples is for bench predictor, without --parts.');
    if (options.beside.length > 0 && options.check) throw new UsageError('--check has no bars for runs with --beside.');
    const result = await runBench(options, cleanup);
    const line = JSON.stringify(result);
    if (options.parts.length === 0 && options.gpuSamples === undefined) {
      const folder = join(benchDir, 'results');
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, `${result.bench}.json`), `${line}\n`);
      await writeFigures();
    }
    const missed = options.check ? missedBars(result.bench, result.metrics) : [];
    for (const { metric, bound, value } of missed) {
      say(`${metric} is ${result.metrics[metric] ?? 'missing'}, and should be ${bound} ${value}.`);
    }
    process.stdout.write(`${line}\n`);
    return missed.length > 0 ? 1 : 0;
  } catch (error) {
    if (error instanceof UsageError) {
      say(`${error.message}\n${usage()}`);
      return 2;
    }
    if (error instanceof BenchDataError) say(error.message);
    else say(`The benchmark failed: ${(error as Error).stack ?? String(error)}`);
    return 1;
  } finally {
    await cleanup.run();
  }
}

const [bench, ...flags] = process.argv.slice(2);
if (bench === 'figures') await writeFigures();
else process.exitCode = bench === 'gpu' ? await runGpuBench(flags) : await main();
