import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { endAll, leftOversOf } from './left-overs.js';
import type { StageReport } from './report.js';
import type { Finding, StageOptions } from './stages/stage.js';

const program = fileURLToPath(new URL('stage-process.js', import.meta.url));
/** Time of a stage's own cleanup, ms: what it started ends in order. */
const cleanupMs = 12_000;
/** Time for processes of an ended stage to end by themselves, and the interval of looks, ms. */
const [goneWithinMs, lookMs] = [3000, 100];

/** Settings of runStage besides the stage's own. */
export interface RunStageOptions extends Omit<StageOptions, 'work'> {
  /** Folder below which the stage gets one of its own. */
  folder: string;
  /** Called with the output of the stage. */
  log(text: string): void;
  /** Ends the stage early. */
  signal: AbortSignal;
}

/**
 * Runs a stage in a process of its own and collects its findings. At the time limit it gets SIGTERM, and SIGKILL 12 s later.
 * Processes that it leaves are ended, and are a failed check.
 */
export async function runStage({ folder, log, signal: stop, ...options }: RunStageOptions): Promise<StageReport> {
  const { stage, budgetMs } = options;
  const work = join(folder, stage);
  await mkdir(work, { mode: 0o755 });
  const report: StageReport = { stage, state: 'crashed', tookS: 0, checks: [], metrics: {}, notes: [] };
  const beganMs = performance.now();
  const child = fork(program, [JSON.stringify({ ...options, work } satisfies StageOptions)], {
    silent: true,
    detached: true,
    env: { ...process.env, TMPDIR: work, GPUWHISK_GPU_DAY: work },
  });
  child.stdout?.on('data', (chunk: Buffer) => log(chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => log(chunk.toString()));
  child.on('message', (finding: Finding) => note(report, finding));
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  let killing: NodeJS.Timeout | undefined;
  const cutOff = (problem: string): void => {
    report.state = 'cut off';
    report.problem ??= problem;
    child.kill('SIGTERM');
    killing ??= setTimeout(() => child.kill('SIGKILL'), cleanupMs);
  };
  const timer = setTimeout(() => cutOff(`it did not end within ${Math.round(budgetMs / 1000)} s`), budgetMs);
  const interrupt = (): void => cutOff('the kit was interrupted');
  stop.addEventListener('abort', interrupt);
  const [code, signal] = await exited;
  stop.removeEventListener('abort', interrupt);
  clearTimeout(timer);
  clearTimeout(killing);
  if (report.state === 'crashed') report.problem = `its process ended with ${signal ?? code}`;
  await endLeftOvers(work, report);
  await rm(work, { recursive: true, force: true });
  report.tookS = (performance.now() - beganMs) / 1000;
  return report;
}

function note(report: StageReport, finding: Finding): void {
  if (finding.type === 'check') report.checks.push(finding.check);
  else if (finding.type === 'metric') report.metrics[finding.name] = finding.value;
  else if (finding.type === 'note') report.notes.push(finding.line);
  else if (report.state === 'crashed') {
    // An end after the time limit leaves the state `cut off`.
    const failed = finding.problem !== undefined || report.checks.some(({ passed }) => !passed);
    report.state = failed ? 'failed' : 'passed';
    if (finding.problem !== undefined) report.problem = finding.problem;
  }
}

async function endLeftOvers(work: string, report: StageReport): Promise<void> {
  const untilMs = performance.now() + goneWithinMs;
  let left = leftOversOf(work);
  while (left.length > 0 && performance.now() < untilMs) {
    await sleep(lookMs);
    left = leftOversOf(work);
  }
  if (left.length === 0) return;
  endAll(left);
  const names = left.map(({ pid, command }) => `${pid} (${command})`).join(', ');
  // A stage that was ended in the middle may leave processes; one that ended by itself may not.
  if (report.state !== 'passed' && report.state !== 'failed') return void report.notes.push(`Ended: ${names}`);
  report.checks.push({ name: 'nothing is left running', passed: false, detail: names });
  report.state = 'failed';
}
