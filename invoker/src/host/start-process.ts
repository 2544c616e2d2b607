// Child processes. The addon starts them in a fraction of a millisecond; Node.js itself copies the page tables of the whole
// server for each, for milliseconds in which nothing else is answered.
import { spawn as spawnByNode } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { accessSync, closeSync, constants, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { constants as osConstants } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import { builtPath } from './native-programs.js';

/** A child process. Emits `exit` once, after exitCode or signalCode is set. */
export interface StartedProcess {
  readonly pid: number;
  /** Exit status; null before the end, and if a signal ended the process. */
  readonly exitCode: number | null;
  /** The signal that ended the process. */
  readonly signalCode: NodeJS.Signals | null;
  /** Sends a signal; false if the process has ended. */
  kill(signal: NodeJS.Signals): boolean;
  /** Lets the process keep this one's event loop alive, as it does at first, or no longer. */
  ref(): void;
  unref(): void;
  once(event: 'exit', listener: () => void): unknown;
}

/** A child process with its streams, whose errors are ignored: the end of the process tells. */
export interface ProcessWithStreams {
  child: StartedProcess;
  /** Null if `stdin` was `ignore`. */
  stdin: Writable | null;
  stdout: Readable;
  stderr: Readable;
  /** This side of the child's descriptors 3 and up. */
  sockets: Duplex[];
  /** Resolves when the process and its output have ended. */
  closed: Promise<void>;
}

/** Settings of a start. */
export interface StartOptions {
  env: NodeJS.ProcessEnv;
  cwd?: string;
  /** Whether the child leads a session, and so a process group, of its own. */
  newSession?: boolean;
  stdin?: 'pipe' | 'ignore';
  /** Number of sockets that the child has as descriptors 3 and up; default: none. */
  sockets?: number;
}

interface SpawnAddon {
  readonly canSpawn: boolean;
  pipe(): [number, number];
  socketPair(): [number, number];
  spawn(
    command: readonly string[],
    environment: readonly string[],
    folder: string | null,
    descriptors: readonly number[],
    newSession: boolean,
    onExit: (status: number, signal: number) => void,
  ): [number, unknown];
  hold(handle: unknown, holds: boolean): void;
}

const addonPath = builtPath('spawn.node');
let addon: SpawnAddon | undefined;

function findAddon(): SpawnAddon | undefined {
  if (addon === undefined && existsSync(addonPath)) addon = createRequire(import.meta.url)(addonPath) as SpawnAddon;
  return addon;
}

/**
 * Starts a program: a path, or a name that is looked for on the PATH of `env`. Throws an Error that names the program if it
 * cannot be started.
 */
export function startProcess(program: string, args: readonly string[], options: StartOptions): ProcessWithStreams {
  const found = findAddon();
  if (found?.canSpawn !== true) return startByNode(program, args, options);
  return withEnd(startByAddon(found, program, args, options));
}

/** As startProcess, where the addon is missing or the kernel is older than 5.3. */
export function startByNode(program: string, args: readonly string[], options: StartOptions): ProcessWithStreams {
  return withEnd(startChild(program, args, options));
}

function withEnd(started: Started): ProcessWithStreams {
  const { child, stdin, stdout, stderr, sockets } = started;
  for (const stream of [stdin, ...sockets]) stream?.on('error', () => undefined);
  // Streams that are not read would never close.
  child.once('exit', () => {
    stdin?.destroy();
    for (const stream of [stdout, stderr, ...sockets]) stream.resume();
  });
  const exited = new Promise<void>((resolve) => child.once('exit', resolve));
  const outputs = [stdout, stderr].map((stream) => new Promise<void>((resolve) => stream.once('close', resolve)));
  return { ...started, closed: Promise.all([exited, ...outputs]).then(() => undefined) };
}

type Started = Omit<ProcessWithStreams, 'closed'>;

class AddonProcess extends EventEmitter implements StartedProcess {
  readonly pid: number;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  private readonly handle: unknown;
  private isOver = false;

  constructor(
    private readonly addon: SpawnAddon,
    command: readonly string[],
    { env, cwd, newSession = false }: StartOptions,
    descriptors: readonly number[],
  ) {
    super();
    const environment = Object.entries(env).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${value}`],
    );
    const end = (status: number, signal: number): void => this.end(status, signal);
    [this.pid, this.handle] = addon.spawn(command, environment, cwd ?? null, descriptors, newSession, end);
  }

  kill(signal: NodeJS.Signals): boolean {
    // After its end its pid may be another process's.
    return !this.isOver && process.kill(this.pid, signal);
  }

  ref(): void {
    if (!this.isOver) this.addon.hold(this.handle, true);
  }

  unref(): void {
    if (!this.isOver) this.addon.hold(this.handle, false);
  }

  private end(status: number, signal: number): void {
    this.isOver = true;
    if (signal === 0) this.exitCode = status;
    else this.signalCode = signalName(signal);
    this.emit('exit');
  }
}

function signalName(number: number): NodeJS.Signals {
  const [name = 'SIGKILL'] = Object.entries(osConstants.signals).find(([, value]) => value === number) ?? [];
  return name as NodeJS.Signals;
}

function startByAddon(using: SpawnAddon, program: string, args: readonly string[], options: StartOptions): Started {
  const ours: Socket[] = [];
  const theirs: number[] = [];
  const open = ([own, childs]: [number, number], ends: { readable: boolean; writable: boolean }): Socket => {
    theirs.push(childs);
    const stream = new Socket({ fd: own, ...ends });
    ours.push(stream);
    return stream;
  };
  try {
    const both = { readable: true, writable: true };
    const stdin = options.stdin === 'pipe' ? open(using.socketPair(), both) : null;
    const [stdout, stderr] = [1, 2].map(() => open(using.pipe(), { readable: true, writable: false })) as [
      Socket,
      Socket,
    ];
    const sockets = Array.from({ length: options.sockets ?? 0 }, () => open(using.socketPair(), both));
    const path = pathOf(program, options.env['PATH'] ?? '');
    const descriptors = stdin === null ? [-1, ...theirs] : theirs;
    const child = new AddonProcess(using, [path, ...args], options, descriptors);
    return { child, stdin, stdout, stderr, sockets };
  } catch (error) {
    for (const stream of ours) stream.destroy();
    throw new Error(`${program} could not be started: ${(error as Error).message}`, { cause: error });
  } finally {
    for (const descriptor of theirs) closeSync(descriptor);
  }
}

/** The path of a program. Throws if there is none of the name. */
function pathOf(program: string, path: string): string {
  if (program.includes('/')) return program;
  for (const folder of path.split(delimiter)) {
    try {
      const file = join(folder, program);
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Looked for in the next folder.
    }
  }
  throw new Error(`There is no program ${program} on the PATH.`);
}

function startChild(
  program: string,
  args: readonly string[],
  { env, cwd, newSession = false, stdin = 'ignore', sockets: count = 0 }: StartOptions,
): Started {
  const pipes = Array.from({ length: 2 + count }, () => 'pipe' as const);
  const child = spawnByNode(program, args, { env, cwd, detached: newSession, stdio: [stdin, ...pipes] });
  // Emitted when there is no pid.
  child.on('error', () => undefined);
  const [, stdout, stderr, ...sockets] = child.stdio as unknown as [unknown, Readable, Readable, ...Duplex[]];
  if (child.pid === undefined) throw new Error(`${program} could not be started.`);
  return { child: child as typeof child & { pid: number }, stdin: child.stdin, stdout, stderr, sockets };
}
