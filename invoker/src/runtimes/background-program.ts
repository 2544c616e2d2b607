import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { ProgramError, ignoreEnded, lastLineOf } from './run-program.js';

/** Of what the program says on stderr, the end is kept. */
const keptBytes = 16 * 1024;

/**
 * Runs a program of the host at the lowest priority and resolves with true; with false if `stop` ended it and what it
 * started. Rejects with ProgramError, also where it has not ended after `timeoutMs`.
 */
export function runInBackground(
  program: string,
  args: readonly string[],
  options: { timeoutMs: number; env: NodeJS.ProcessEnv; cwd: string; stop: AbortSignal },
): Promise<boolean> {
  const { timeoutMs, env, cwd, stop } = options;
  if (stop.aborted) return Promise.resolve(false);
  return new Promise((resolve, reject) => {
    // A process group of its own, so that what the program starts ends with it.
    const child = spawn(program, [...args], { env, cwd, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    const { pid } = child;
    let said = '';
    let late = false;
    if (pid !== undefined) lowerPriority(pid);
    const kill = (): void => {
      if (pid !== undefined) killGroup(pid);
    };
    const timer = setTimeout(() => {
      late = true;
      kill();
    }, timeoutMs);
    stop.addEventListener('abort', kill);
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', kill);
      settle();
    };
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-keptBytes)));
    child.on('error', (error) => end(() => reject(new ProgramError(program, error.message))));
    child.on('close', (code, signal) =>
      end(() => {
        if (code === 0) resolve(true);
        else if (late) reject(new ProgramError(program, `no end within ${timeoutMs} ms`));
        else if (stop.aborted) resolve(false);
        else reject(new ProgramError(program, lastLineOf(said) || `it ended with ${code ?? signal}`));
      }),
    );
  });
}

function lowerPriority(pid: number): void {
  ignoreEnded(() => setPriority(pid, constants.priority.PRIORITY_LOW));
}

function killGroup(pid: number): void {
  ignoreEnded(() => process.kill(-pid, 'SIGKILL'));
}
