// Programs of the host: search, and runs with time limits and bounded output.
import { spawn } from 'node:child_process';
import { access, constants, realpath, stat } from 'node:fs/promises';
import { getPriority, setPriority, constants as osConstants } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { startProcess } from './start-process.js';
import type { ProcessWithStreams } from './start-process.js';

/** A program of the host failed, could not be started, or exceeded its time limit; `lastLine` is its last line of output. */
export class ProgramError extends Error {
  override name = 'ProgramError';
  constructor(
    program: string,
    readonly lastLine: string,
    /** Its own last lines that report an error, or the bound that it exceeded; empty if it reported none. */
    readonly errorLines: readonly string[] = [],
  ) {
    super(`${program}: ${lastLine}`);
  }
}

const maxOutputBytes = 8 * 1024 * 1024;

let lastStart = Promise.resolve();

/** Resolves when the next program may be started: one a turn of the event loop, as a start takes it some milliseconds. */
function nextStart(): Promise<void> {
  lastStart = lastStart.then(() => new Promise((resolve) => setImmediate(resolve)));
  return lastStart;
}

/**
 * Runs a program of the host without a shell, with `input` on its stdin, and resolves with its stdout. Rejects with
 * ProgramError. The program is killed after `timeoutMs` or when `stop` is aborted.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: { timeoutMs: number; env?: NodeJS.ProcessEnv; cwd?: string; input?: string; stop?: AbortSignal },
): Promise<string> {
  await nextStart();
  const { timeoutMs, env = process.env, cwd, input, stop } = options;
  const stopped = 'the platform is being stopped';
  if (stop?.aborted === true) throw new ProgramError(program, stopped);
  const { child, stdin, stdout, stderr, closed } = startOrThrow(program, args, env, cwd);
  // The platform's own priority is not passed on to the program.
  if (getPriority() < 0) ignoreEnded(() => setPriority(child.pid, 0));
  let broken: string | undefined;
  const breakOff = (reason: string): void => {
    broken ??= reason;
    child.kill('SIGKILL');
    // A child of the program may hold them.
    stdout.destroy();
    stderr.destroy();
  };
  const tooMuch = (): void => breakOff(`more than ${maxOutputBytes / 1024 / 1024} MiB of output`);
  const [said, complained] = [collect(stdout, tooMuch), collect(stderr, tooMuch)];
  const onStop = (): void => breakOff(stopped);
  const timer = setTimeout(() => breakOff(`no end within ${timeoutMs} ms`), timeoutMs);
  stop?.addEventListener('abort', onStop);
  stdin?.end(input); // A program may end without reading all input; its status decides.
  await closed;
  clearTimeout(timer);
  stop?.removeEventListener('abort', onStop);
  if (broken === undefined && child.exitCode === 0) return said();
  const status = `it ended with ${child.exitCode ?? child.signalCode}`;
  if (broken !== undefined) throw new ProgramError(program, broken);
  throw new ProgramError(program, lastLineOf(complained()) || status, errorLinesOf(complained()));
}

function startOrThrow(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string | undefined,
): ProcessWithStreams {
  try {
    return startProcess(program, args, { env, stdin: 'pipe', ...(cwd !== undefined && { cwd }) });
  } catch (error) {
    const { cause, message } = error as Error;
    throw new ProgramError(program, cause instanceof Error ? cause.message : message);
  }
}

/** Reads a stream to its end; the returned function gives its text. Calls `tooMuch` beyond 8 MiB. */
function collect(stream: Readable, tooMuch: () => void): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxOutputBytes) tooMuch();
    else chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString();
}

/** The last line that reports an error, or else the last line. */
export function lastLineOf(text: string): string {
  return errorLinesOf(text).at(-1) ?? linesOf(text).at(-1) ?? '';
}

/** The last three lines that report an error, each of 500 characters at most. */
export function errorLinesOf(text: string): string[] {
  return linesOf(text)
    .filter((line) => /^(npm )?err(or)?!?[ :]/i.test(line) && !/complete log|debug-0\.log/.test(line))
    .slice(-3)
    .map((line) => line.slice(0, 500));
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Runs an operation on a process, and ignores that the process may have ended. */
function ignoreEnded(act: () => void): void {
  try {
    act();
  } catch (error) {
    const { code, info } = error as NodeJS.ErrnoException & { info?: { code?: string } };
    if (code !== 'ESRCH' && info?.code !== 'ESRCH') throw error;
  }
}

/** Bytes that are kept of the end of a program's stderr. */
const keptBytes = 16 * 1024;

/**
 * Runs a program of the host at the lowest priority. Resolves with true, or with false if `stop` ended the program and its
 * children. Rejects with ProgramError, also if the program has not ended after `timeoutMs`.
 */
export function runInBackground(
  program: string,
  args: readonly string[],
  options: { timeoutMs: number; env: NodeJS.ProcessEnv; cwd: string; stop: AbortSignal },
): Promise<boolean> {
  const { timeoutMs, env, cwd, stop } = options;
  if (stop.aborted) return Promise.resolve(false);
  return new Promise((resolve, reject) => {
    // The program has its own process group, so that its children end with it.
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
  ignoreEnded(() => setPriority(pid, osConstants.priority.PRIORITY_LOW));
}

function killGroup(pid: number): void {
  ignoreEnded(() => process.kill(-pid, 'SIGKILL'));
}

/** Time limits of a tool's attempts, ms: on a busy machine a late tool is called again with more time. */
const timeoutsMs = [10_000, 30_000];
const maxTextBytes = 64 * 1024;
const maxToolOutputBytes = 1024 * 1024;

/**
 * The full path of a program of the host; undefined if there is none. Also searches the folders of administrators' tools.
 */
export async function findTool(name: string): Promise<string | undefined> {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/bin', '/bin'];
  for (const folder of folders.filter((each) => each !== '')) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}

/** A program of the host did not end in time, which says nothing about the host's permissions. */
export class ToolTimeoutError extends Error {
  override name = 'ToolTimeoutError';
}

/**
 * Runs a program with `input` on its standard input. Rejects with the program's output unless it exits with 0, and with
 * ToolTimeoutError.
 */
export async function runTool(path: string, args: readonly string[], input = ''): Promise<void> {
  await readTool(path, args, input);
}

/** As runTool, but resolves with the program's standard output, at most 1 MiB. */
export async function readTool(path: string, args: readonly string[], input = ''): Promise<string> {
  for (const timeoutMs of timeoutsMs) {
    try {
      return await readOnce(path, args, input, timeoutMs);
    } catch (error) {
      if (!(error instanceof ToolTimeoutError)) throw error;
    }
  }
  throw new ToolTimeoutError(`'${path} ${args.join(' ')}' did not end in ${timeoutsMs.length} calls`);
}

function readOnce(path: string, args: readonly string[], input: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs, killSignal: 'SIGKILL' });
    let text = '';
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      if (output.length < maxToolOutputBytes) output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (text.length < maxTextBytes) text += chunk.toString();
    });
    // A program may exit without reading all input; its status decides.
    child.stdin.on('error', () => undefined);
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else if (child.killed) reject(new ToolTimeoutError(`${path} had not ended after ${timeoutMs} ms`));
      else reject(new Error(text.trim() || `${path} ended with ${code}`));
    });
    child.stdin.end(input);
  });
}

/** The files of a name in the folders of a PATH, in the PATH's order, with links resolved and without duplicates. */
export async function findOnPath(name: string, path: string): Promise<string[]> {
  const found = new Set<string>();
  for (const folder of path.split(delimiter).filter((each) => each !== '')) {
    const file = await realpath(join(folder, name)).catch(() => undefined);
    if (file !== undefined && (await stat(file)).isFile()) found.add(file);
  }
  return [...found];
}
