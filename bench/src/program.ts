// What `npm run bench` and `npm run research` are: a table of benches that are run by name, with results, bars and figures.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missedBars } from './bars.js';
import type { Bar } from './bars.js';
import type { Bench } from './bench.js';
import { newCleanup, type Cleanup } from './cleanup.js';
import { BenchDataError } from './data/csv.js';
import { chooseLoad } from './load/wrk.js';
import { currentCommit, thisMachine } from './machine.js';
import { commandLine, parseOptions, UsageError, type Options } from './options.js';
import { flatMetrics, formatTable, resultName, type Result } from './report.js';

/** A program of benches. */
export interface Program {
  /** Its script in package.json, as in `npm run NAME`. */
  name: string;
  benches: Readonly<Record<string, Bench>>;
  bars: readonly Bar[];
  /** The folder of the results of full runs. */
  results: string;
  /** Lines after the list of benches in the usage. */
  further: readonly string[];
  /** Flags of its benches besides those that all have, as the usage shows them. */
  flags?: readonly string[];
  /** Writes the figures of the results into the documents. */
  writeFigures(): Promise<void>;
  /** Throws UsageError for flags that the named bench does not have. */
  check(options: Options): void;
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The flags and benches of a program, for the terminal. */
export function usageOf({ name: program, benches, further, flags = [] }: Program): string {
  const names = Object.entries(benches).map(
    ([name, { summary, parts }]) =>
      `  ${name.padEnd(10)} ${summary}${parts.length > 1 ? ` (parts: ${parts.join(', ')})` : ''}`,
  );
  return [
    `Usage: npm run ${program} -- NAME [--check] [--parts A,B] [--rounds N] [--seconds N] [--samples N]`,
    '         [--idle-seconds N] [--load-seconds N] [--calls N] [--seed N] [--client auto|wrk|autocannon]',
    ...flags,
    ...names,
    ...further,
  ].join('\n');
}

async function runBench({ name, benches, bars }: Program, options: Options, cleanup: Cleanup): Promise<Result> {
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
  process.stdout.write(`${formatTable(bars, options.bench, measurements)}\n`);
  return {
    bench: resultName(options),
    commit: await currentCommit(),
    date: new Date().toISOString().slice(0, 10),
    machine: thisMachine(),
    simulated,
    command: commandLine({ ...options, client: load.name.startsWith('wrk') ? 'wrk' : 'autocannon' }, name),
    seed: options.seed,
    metrics: flatMetrics(measurements),
  };
}

/**
 * Runs the bench that the arguments name. Resolves with the exit status: 0, 1 for a failure or a missed bar under --check,
 * 2 for an invalid command line.
 */
export async function runProgram(program: Program, args: readonly string[]): Promise<number> {
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
    const options = parseOptions(args);
    program.check(options);
    const result = await runBench(program, options, cleanup);
    const line = JSON.stringify(result);
    if (options.parts.length === 0 && options.gpuSamples === undefined && options.quick !== true) {
      await mkdir(program.results, { recursive: true });
      await writeFile(join(program.results, `${result.bench}.json`), `${line}\n`);
      await program.writeFigures();
    }
    const missed = options.check ? missedBars(program.bars, result.bench, result.metrics) : [];
    for (const { metric, bound, value } of missed) {
      say(`${metric} is ${result.metrics[metric] ?? 'missing'}, and should be ${bound} ${value}.`);
    }
    process.stdout.write(`${line}\n`);
    return missed.length > 0 ? 1 : 0;
  } catch (error) {
    if (error instanceof UsageError) {
      say(`${error.message}\n${usageOf(program)}`);
      return 2;
    }
    if (error instanceof BenchDataError) say(error.message);
    else say(`The benchmark failed: ${(error as Error).stack ?? String(error)}`);
    return 1;
  } finally {
    await cleanup.run();
  }
}
