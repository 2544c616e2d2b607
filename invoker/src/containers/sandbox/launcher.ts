import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import type { Duplex, Readable, Writable } from 'node:stream';
import { closeSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { builtPath } from '../../host/native-build.js';

/** A process with its pipes and its socket (descriptor 3). */
export interface SandboxProcess {
  child: ChildProcess;
  socket: Duplex;
  /** Takes commands for a launcher; null for a runtime without one. */
  control: Writable | null;
  stdout: Readable;
  stderr: Readable;
  /** Its end, with that of all that it printed. */
  closed: Promise<void>;
}

/** What a launcher's control takes. */
export const commands = { pause: 'p', resume: 'r' } as const;

/** The signal by which a launcher ends itself to say that its sandbox ran out of memory. */
export const outOfMemorySignal = 'SIGUSR2';

function start(
  program: string,
  args: readonly string[],
  stdin: 'pipe' | 'ignore',
  options: SpawnOptions,
): SandboxProcess {
  const outputs: OutputPipe[] = [];
  let child: ChildProcess;
  try {
    for (let stream = 1; stream <= 2; stream += 1) outputs.push(openOutputPipe());
    child = spawn(program, args, { ...options, stdio: [stdin, ...outputs.map(({ stdio }) => stdio), 'pipe'] });
  } catch (error) {
    for (const { readable } of outputs) readable?.destroy();
    throw error;
  } finally {
    for (const output of outputs) output.release();
  }
  const [stdout, stderr] = [outputs[0]?.readable ?? child.stdout, outputs[1]?.readable ?? child.stderr];
  // A start that fails is reported here; the container, if there is one by then, listens itself.
  child.on('error', () => undefined);
  const socket = child.stdio[3] as Duplex | null | undefined;
  if (child.pid === undefined || !stdout || !stderr || !socket) {
    stdout?.destroy();
    stderr?.destroy();
    throw new Error(`'${child.spawnfile}' could not be started.`);
  }
  // The container listens to the process itself; writing to one that has gone must not end the platform.
  socket.on('error', () => undefined);
  child.stdin?.on('error', () => undefined);
  // What nobody read would not close.
  child.on('exit', () => [stdout, stderr].forEach((stream) => stream.resume()));
  const closed = Promise.all([child, stdout, stderr].map((each) => once(each, 'close')));
  return { child, socket, control: child.stdin, stdout, stderr, closed: closed.then(() => undefined) };
}

/** Resolves with the event; unlike that of node:events it rejects for nothing. */
function once(emitter: EventEmitter, event: string): Promise<void> {
  return new Promise((resolve) => emitter.once(event, () => resolve()));
}

/** Starts a launcher, which waits for the spec. `tag` shows in the process list and finds leftovers. */
export function startLauncher(path: string, tag: string, firstWords: Words): SandboxProcess {
  const process = start(path, [tag], 'pipe', { env: {} });
  if (firstWords.length > 0) sendSpec(process, [...firstWords, 'wait']);
  return process;
}

/** Sends the launcher a part of its spec; the part with `exec` is the last. */
export function sendSpec(process: SandboxProcess, words: Words): void {
  process.socket.write(specMessage(words));
}

/** Starts a runtime with no sandbox around it, in a process group of its own. */
export function startBare(command: readonly string[], cwd: string, env: Record<string, string>): SandboxProcess {
  const [program = '', ...args] = command;
  return start(program, args, 'ignore', { env, cwd, detached: true });
}

/** Waits for a launcher that is to end by itself; what it reported meanwhile, and its exit status. */
export function launcherResult(process: SandboxProcess): Promise<{ reports: string[]; status: number | null }> {
  const reports: string[] = [];
  process.socket.on('data', (chunk: Buffer) => {
    // Frames of the launcher: nine bytes of header before the text, one at a time.
    for (let at = 0; at + 9 <= chunk.length; at += 9 + chunk.readUInt32LE(at)) {
      reports.push(chunk.toString('utf8', at + 9, at + 9 + chunk.readUInt32LE(at)));
    }
  });
  process.stdout.resume();
  process.stderr.resume();
  return new Promise((resolve) => {
    process.child.on('error', () => resolve({ reports, status: null }));
    void process.closed.then(() => resolve({ reports, status: process.child.exitCode }));
  });
}

/** Words of a launcher's spec (native/sandbox/spec.c lists them). */
export type Words = string[];

/** A message to the launcher: u32 little-endian length, then each word with a NUL after it. Throws on a NUL in a word. */
export function specMessage(words: Words): Buffer {
  for (const word of words) {
    if (word.includes('\0')) throw new Error(`A sandbox cannot be given the word ${JSON.stringify(word)}.`);
  }
  const body = Buffer.from(words.join('\0') + '\0');
  const message = Buffer.allocUnsafe(4 + body.length);
  message.writeUInt32LE(body.length, 0);
  body.copy(message, 4);
  return message;
}

interface PipeAddon {
  /** `[read, write]`, descriptors. */
  make(): [number, number];
}

const addonPath = builtPath('pipe.node');
let addon: PipeAddon | undefined;

/** What a child process is to print into. */
interface OutputPipe {
  /** For the child's stdio. Without the addon Node's own kind, a socket, which nobody can open by its path. */
  stdio: number | 'pipe';
  /** What the child prints; undefined where `stdio` is `'pipe'`, of which Node makes one. */
  readable: Readable | undefined;
  /** Closes this process's copy of the child's end: once the child has its own, or there is to be none. Once. */
  release(): void;
}

/** Makes a pipe. Throws where no more descriptors are to be had. */
function openOutputPipe(): OutputPipe {
  if (addon === undefined && existsSync(addonPath)) addon = createRequire(import.meta.url)(addonPath) as PipeAddon;
  if (addon === undefined) return { stdio: 'pipe', readable: undefined, release: () => undefined };
  const [read, write] = addon.make();
  const readable = new Socket({ fd: read, readable: true, writable: false });
  return { stdio: write, readable, release: () => closeSync(write) };
}
