import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('run.js', import.meta.url));
/** Time limit far above that of the seeds, which ends a simulation that loops forever, ms. */
const timeoutMs = 110_000;

/** Result of a run of the simulation. */
export interface SeedsRun {
  /** 0: every promise was kept; 1: one was broken, and `output` says at which seed. */
  exitCode: number | null;
  output: string;
}

/** Runs the simulation in a process of its own, where an unhandled rejection is detected. */
export function runSeeds(...args: string[]): Promise<SeedsRun> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], { timeout: timeoutMs }, (_error, stdout, stderr) => {
      resolve({ exitCode: child.exitCode, output: stdout + stderr });
    });
  });
}
