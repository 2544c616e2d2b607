// The GPU kit: runs the whole product on a GPU, stage by stage, within a budget of time. docs/gpu-day.md.
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { currentCommit, repositoryDir } from '../machine.js';
import { changesOf, readDeviceState } from './device-state.js';
import type { DeviceState } from './device-state.js';
import { limitOf, merged, stagesOf } from './plan.js';
import { firstError, isClean, pageOf } from './report.js';
import type { KitReport, StageReport } from './report.js';
import { runStage } from './run-stage.js';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const usage = `Usage: gpu-day [--simulated] [--stages A,B] [--budget S] [--out FOLDER] [--python PROGRAM] [--seed N]
  Runs the product on this machine's first GPU, or (--simulated) on the stand-in driver. Stages, in this order: facts,
  platform, injection, tokens, colocation. --budget is the time for all, default 330 s. Results go to FOLDER (default:
  ./results); a second run with the same folder takes the stages that have not passed, then continues co-location.
  --python is the interpreter that has PyTorch, default python3.`;

interface KitOptions {
  simulated: boolean;
  stages: string[] | undefined;
  budgetS: number;
  out: string;
  python: string;
  seed: number;
}

/** Reads the command line. Throws RangeError, or parseArgs' TypeError, for an invalid one; undefined if help is wanted. */
function readOptions(args: readonly string[]): KitOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      simulated: { type: 'boolean', default: false },
      stages: { type: 'string' },
      budget: { type: 'string', default: '330' },
      out: { type: 'string', default: 'results' },
      python: { type: 'string', default: 'python3' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const number = (name: 'budget' | 'seed'): number => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new RangeError(`--${name} takes a positive number, not '${values[name]}'.`);
    return value;
  };
  const stages = values.stages?.split(',');
  stagesOf([], stages); // Throws for an unknown name.
  const { simulated, python } = values;
  return { simulated, stages, python, budgetS: number('budget'), seed: number('seed'), out: resolve(values.out) };
}

/** Most bytes that log.txt takes from a run. */
const maxLogBytes = 8 << 20;
/** Free space, MiB, below which stages may fail: data folders, archives and images of functions. */
const enoughMiB = 500;

/** Writes files of results. A full disk or a folder that cannot be written is said once; the page is printed all the same. */
class Results {
  private loggedBytes = 0;
  private problem: string | undefined;

  constructor(private readonly folder: string) {}

  async open(): Promise<void> {
    await this.attempt(() => mkdir(this.folder, { recursive: true }));
  }

  async log(text: string): Promise<void> {
    if (this.loggedBytes > maxLogBytes) return;
    this.loggedBytes += text.length;
    await this.attempt(() => appendFile(join(this.folder, 'log.txt'), text));
  }

  async write(report: KitReport): Promise<void> {
    await this.attempt(async () => {
      const file = join(this.folder, 'gpu-day.json');
      await writeFile(`${file}.new`, `${JSON.stringify(report, null, 1)}\n`);
      await rename(`${file}.new`, file);
      await writeFile(join(this.folder, 'page.txt'), `${pageOf(report)}\n`);
    });
  }

  private async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.problem === undefined) say(`Results cannot be written: ${(error as Error).message}`);
      this.problem = (error as Error).message;
    }
  }
}

/** The report of an earlier run in this folder; undefined if there is none, or it was of the other kind of driver. */
async function earlierReport(folder: string, simulated: boolean): Promise<KitReport | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, 'gpu-day.json'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  let report: KitReport;
  try {
    report = JSON.parse(text) as KitReport;
  } catch (error) {
    say(`The results of an earlier run cannot be read, and all stages run again: ${(error as Error).message}`);
    return undefined;
  }
  return report.simulated === simulated ? report : undefined;
}

async function readState(simulated: boolean): Promise<DeviceState | undefined> {
  if (simulated) return undefined; // Each stage has a stand-in of its own.
  try {
    return await readDeviceState();
  } catch (error) {
    say(`nvidia-smi does not show a GPU: ${(error as Error).message.split('\n')[0]}`);
    return undefined;
  }
}

async function runKit(options: KitOptions, stop: AbortSignal): Promise<KitReport> {
  const beganMs = performance.now();
  const { simulated, seed, out, python } = options;
  const results = new Results(out);
  await results.open();
  const earlier = await earlierReport(out, simulated);
  const before = await readState(simulated);
  const folder = await mkdtemp(join(tmpdir(), 'gpu-day-'));
  const { bavail, bsize } = await statfs(folder);
  const freeMiB = Math.floor((bavail * bsize) / 2 ** 20);
  if (freeMiB < enoughMiB) say(`Only ${freeMiB} MiB are free in ${tmpdir()}: stages may fail for it.`);
  const report: KitReport = {
    commit: await currentCommit(),
    date: new Date().toISOString().slice(0, 10),
    device: before?.name ?? (simulated ? 'NVIDIA H100 (simulated)' : 'unknown'),
    driver: before?.driver ?? (simulated ? 'simulated' : 'unknown'),
    simulated,
    seed,
    tookS: 0,
    left: [],
    stages: [],
  };
  const now: StageReport[] = [];
  const tookS = (): number => (performance.now() - beganMs) / 1000;
  const write = async (): Promise<void> => {
    Object.assign(report, { tookS: tookS(), stages: merged(earlier?.stages ?? [], now) });
    await results.write(report);
  };
  try {
    for (const settings of stagesOf(earlier?.stages ?? [], options.stages)) {
      const { name } = settings;
      const limitS = limitOf(settings, options.budgetS - tookS(), simulated);
      if (stop.aborted) break;
      const empty = { stage: name, tookS: 0, checks: [], metrics: {}, notes: [] };
      if (limitS === undefined) {
        now.push({ ...empty, state: 'not run', problem: 'no time was left' });
        continue;
      }
      await results.log(`== ${name}\n`);
      const log = (text: string): void => void results.log(text);
      const budgetMs = limitS * 1000;
      const given = { stage: name, simulated, out, python, seed, budgetMs, folder, log, signal: stop };
      // A stage that cannot be begun, as on a full disk, costs only itself.
      const done = await runStage(given).catch(({ message }: Error): StageReport => ({
        ...empty,
        state: 'crashed',
        problem: message,
      }));
      now.push(done);
      say(
        `${name}: ${done.state} in ${done.tookS.toFixed(0)} s${done.state === 'passed' ? '' : `: ${firstError(done)}`}`,
      );
      await write();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const after = before && (await readState(simulated));
  if (before && after) report.left = changesOf(before, after);
  await write();
  return report;
}

/** Exit status: 0 if every stage ended and passed, 1 if not, 2 for an invalid command line. */
async function main(): Promise<number> {
  let options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    say(`${(error as Error).message}\n${usage}`);
    return 2;
  }
  if (options === undefined) {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  say(`Results: ${options.out}. The product is at ${repositoryDir}.`);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop.abort());
  const report = await runKit(options, stop.signal);
  process.stdout.write(`${pageOf(report)}\n`);
  return isClean(report) ? 0 : 1;
}

process.exitCode = await main();
