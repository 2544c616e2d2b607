import { execFile } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';

/** A program of the host failed, could not be started, or ran out of its time; `lastLine` is what it said last. */
export class ProgramError extends Error {
  override name = 'ProgramError';
  constructor(
    program: string,
    readonly lastLine: string,
  ) {
    super(`${program}: ${lastLine}`);
  }
}

const maxOutputBytes = 8 * 1024 * 1024;

/**
 * Runs a program of the host without a shell, `input` on its stdin, and resolves with what it printed on stdout. Rejects with
 * ProgramError; after `timeoutMs`, or when `stop` is aborted, the program is killed.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { timeoutMs: number; env?: NodeJS.ProcessEnv; cwd?: string; input?: string; stop?: AbortSignal },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = {
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL' as const,
      maxBuffer: maxOutputBytes,
      env: options.env ?? process.env,
      cwd: options.cwd,
      ...(options.stop && { signal: options.stop }),
    };
    const whyFailed = (error: Error, stderr: string): string => {
      if (options.stop?.aborted) return 'the platform is being stopped';
      return child.killed ? `no end within ${options.timeoutMs} ms` : lastLineOf(stderr) || error.message;
    };
    const child = execFile(program, [...args], settings, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      reject(new ProgramError(program, whyFailed(error, stderr)));
    });
    // Unlike the platform it does not go before others on the processors.
    if (child.pid !== undefined && getPriority() < 0) ignoreEnded(() => setPriority(child.pid as number, 0));
    child.stdin?.on('error', () => undefined); // It ended without reading all: its status tells.
    child.stdin?.end(options.input);
  });
}

/** The last line that reports an error, or else the last line. */
export function lastLineOf(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return (
    lines.findLast((line) => /^(npm )?err(or)?!?[ :]/i.test(line) && !/complete log|debug-0\.log/.test(line)) ??
    lines.at(-1) ??
    ''
  );
}

/** A process may end in the very moment that something is done to it. */
export function ignoreEnded(act: () => void): void {
  try {
    act();
  } catch (error) {
    const { code, info } = error as NodeJS.ErrnoException & { info?: { code?: string } };
    if (code !== 'ESRCH' && info?.code !== 'ESRCH') throw error;
  }
}
