// Launchers of sandboxes: start, specs, spare launchers, holders of PID namespaces, and removal of leftovers after a crash.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { startProcess } from '../../host/start-process.js';
import type { StartOptions, StartedProcess } from '../../host/start-process.js';
import { removeTree } from '../../host/trees.js';
import { ProvisioningError } from '../container-factory.js';
import type { Cgroups } from './cgroups.js';
import { deferred } from '../protocol/connection.js';

/** A process with its pipes and its socket (descriptor 3). */
export interface SandboxProcess {
  child: StartedProcess;
  socket: Duplex;
  /** The socket for runs (descriptor 4), if the process was given one. */
  runs: Duplex | undefined;
  /** Stream for commands to a launcher; null for a runtime without one. */
  control: Writable | null;
  stdout: Readable;
  stderr: Readable;
  /** Resolves when the process and its output have ended. */
  closed: Promise<void>;
}

/** Commands of a launcher's control stream. */
export const commands = { pause: 'p', resume: 'r' } as const;

/** The signal with which a launcher ends itself to report that its sandbox ran out of memory. */
export const outOfMemorySignal = 'SIGUSR2';

function start(program: string, args: readonly string[], options: StartOptions, withRuns: boolean): SandboxProcess {
  const started = startProcess(program, args, { ...options, sockets: withRuns ? 2 : 1 });
  const { child, stdin: control, stdout, stderr, sockets, closed } = started;
  return { child, socket: sockets[0] as Duplex, runs: sockets[1], control, stdout, stderr, closed };
}

/** Starts a launcher, which waits for its spec. `tag` appears in the process list and identifies leftovers. */
export function startLauncher(path: string, tag: string, firstWords: Words): SandboxProcess {
  // Whether its sandbox keeps the socket for runs is told later, in the spec.
  const process = start(path, [tag], { env: {}, stdin: 'pipe' }, true);
  if (firstWords.length > 0) sendSpec(process, [...firstWords, 'wait']);
  return process;
}

/** Sends the launcher a part of its spec; the part with `exec` is the last. */
export function sendSpec(process: SandboxProcess, words: Words): void {
  process.socket.write(specMessage(words));
}

/** Starts a runtime without a sandbox, in its own process group. */
export function startBare(
  command: readonly string[],
  cwd: string,
  env: Record<string, string>,
  withRuns = false,
): SandboxProcess {
  const [program = '', ...args] = command;
  return start(program, args, { env, cwd, newSession: true }, withRuns);
}

/** Waits for a launcher that ends by itself; resolves with its reports and its exit status. */
export function launcherResult(process: SandboxProcess): Promise<{ reports: string[]; status: number | null }> {
  const reports: string[] = [];
  process.socket.on('data', (chunk: Buffer) => {
    // The launcher's frames have nine bytes of header before the text and arrive one at a time.
    for (let at = 0; at + 9 <= chunk.length; at += 9 + chunk.readUInt32LE(at)) {
      reports.push(chunk.toString('utf8', at + 9, at + 9 + chunk.readUInt32LE(at)));
    }
  });
  process.stdout.resume();
  process.stderr.resume();
  return process.closed.then(() => ({ reports, status: process.child.exitCode }));
}

/** Words of a launcher's spec (native/sandbox/spec.c lists them). */
export type Words = string[];

/**
 * A message to the launcher: its length (u32, little-endian), then each word with a final NUL. Throws on a NUL in a word.
 */
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

/** Launchers that are started ahead of need, with the frames of their sandboxes where there are any. */
const spareLaunchers = 2;
/** Delay before a used spare is replaced: an activation waits for the container that uses it. */
const spareDelayMs = 20;

/** Names of a container to be made, with its launcher if there are launchers. */
export interface Parked {
  id: string;
  slot: number;
  process: SandboxProcess | undefined;
  /** Whether its launcher has been given the frame of its sandbox. */
  framed: boolean;
  /** Whether it waited for its use, so that its launcher may have ended meanwhile. */
  isSpare: boolean;
}

/** A spare launcher ended before it reported how the start went, as when it ends in the instant in which it is taken. */
export class SpareEndedError extends ProvisioningError {}

interface LauncherPoolOptions {
  /** Path of the launcher; undefined if containers have no launchers. */
  launcherPath: string | undefined;
  /** Tag in the process list. */
  tag: string;
  cgroups: Cgroups;
  slots: Slots;
  clock: Clock;
  random: Random;
  /** Words of the frame that a sandbox has wherever it can be made ahead of what runs in it. */
  frame: ((slot: number) => Words) | undefined;
}

/** A pool of launchers that wait for their spec. */
export class LauncherPool {
  private readonly spares: Parked[] = [];
  private refilling = false;
  private closed = false;
  /** Whether a spare has ended by itself: the next ones wait for a container that is wanted, which reports the reason. */
  private hasFailed = false;

  constructor(private readonly options: LauncherPoolOptions) {}

  /**
   * A spare or new launcher; `plain`: one without a frame, `isNew`: no spare. Throws ProvisioningError if there are too many
   * containers or no process starts.
   */
  take({ plain = false, isNew = false } = {}): Parked {
    if (plain && this.options.frame !== undefined) return this.park(true);
    const spare = isNew ? undefined : this.spares.shift();
    return spare === undefined ? this.park() : { ...spare, isSpare: true };
  }

  /** Starts missing spares after `spareDelayMs`. */
  refill(): void {
    this.hasFailed = false;
    this.addLater();
  }

  private addLater(): void {
    const { launcherPath, clock } = this.options;
    if (this.closed || this.refilling || launcherPath === undefined || this.spares.length >= spareLaunchers) return;
    this.refilling = true;
    clock.setBackgroundTimer(spareDelayMs, () => {
      this.refilling = false;
      if (this.closed || this.hasFailed || this.spares.length >= spareLaunchers) return;
      try {
        this.add(this.park());
      } catch (error) {
        // The next create() fails in the same way and reports the error.
        if (!(error instanceof ProvisioningError)) throw error;
        return;
      }
      this.addLater();
    });
  }

  /** Ends the spares. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.spares.splice(0).map((spare) => this.discard(spare)));
  }

  private park(plain = false): Parked {
    const { slots, random, launcherPath, tag, cgroups } = this.options;
    const frame = plain ? undefined : this.options.frame;
    const slot = slots.take();
    if (slot === undefined) throw new ProvisioningError('There are too many containers already.');
    const id = random.hex(8);
    try {
      const words = [...cgroups.makeWords(id), ...(frame?.(slot) ?? [])];
      const process = launcherPath === undefined ? undefined : startLauncher(launcherPath, tag, words);
      return { id, slot, process, framed: frame !== undefined, isSpare: false };
    } catch (error) {
      slots.release(slot);
      throw new ProvisioningError(`No process could be started: ${(error as Error).message}`);
    }
  }

  private add(spare: Parked): void {
    this.spares.push(spare);
    const child = spare.process?.child;
    child?.unref();
    child?.once('exit', () => {
      const index = this.spares.indexOf(spare);
      if (index < 0) return;
      this.hasFailed = true;
      this.spares.splice(index, 1);
      void this.discard(spare);
    });
  }

  private async discard(spare: Parked): Promise<void> {
    const child = spare.process?.child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise<void>((done) => child.once('exit', done));
      child.ref();
      child.kill('SIGKILL');
      await gone;
    }
    // They are not read, so that they would not notice their end.
    for (const stream of [spare.process?.socket, spare.process?.runs, spare.process?.control]) stream?.destroy();
    await this.options.cgroups.remove(spare.id);
    this.options.slots.release(spare.slot);
  }
}

/** Small numbers, each held by one sandbox at a time; a sandbox's user id and address follow from its slot. */
export class Slots {
  private readonly free: number[] = [];
  private next: number;

  /** Slots from `first` to `count - 1`. */
  constructor(
    first: number,
    private readonly count: number,
  ) {
    this.next = first;
  }

  /** A free slot; undefined if all are held. Unused slots come first, so that a slot's reuse is as late as possible. */
  take(): number | undefined {
    return this.next < this.count ? this.next++ : this.free.shift();
  }

  release(slot: number): void {
    this.free.push(slot);
  }
}

const killWaitMs = 3000;
const pollMs = 10;

/** Processes of launchers and holders with `tag`; their sandboxes end with them. */
async function launchersOf(tag: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const words = (await readFile(join('/proc', name, 'cmdline'), 'utf8').catch(() => '')).split('\0');
    if (words[1] === tag && (words.length === 3 || words[2] === holdFlag)) found.push(Number(name));
  }
  return found;
}

/**
 * Kills and removes leftovers of an earlier process with the same data folder: launchers (known by `tag`), control groups
 * and folders of sandboxes. Network links end with their sandboxes. Returns the number of sandboxes found.
 */
export async function removeLeftovers(options: {
  tag: string;
  cgroups: Cgroups;
  sandboxesFolder: string;
  clock: Clock;
}): Promise<number> {
  const deadlineMs = options.clock.monotonicMs() + killWaitMs;
  let killed = 0;
  for (let pids = await launchersOf(options.tag); pids.length > 0; pids = await launchersOf(options.tag)) {
    if (options.clock.monotonicMs() > deadlineMs) throw new Error(`Processes ${pids.join(', ')} cannot be killed.`);
    killed = Math.max(killed, pids.length);
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    await sleep(options.clock, pollMs);
  }
  const groups = await options.cgroups.list();
  await Promise.all(groups.map((id) => options.cgroups.remove(id)));
  const folders = await readdir(options.sandboxesFolder).catch(() => []);
  await Promise.all(folders.map((name) => removeTree(join(options.sandboxesFolder, name))));
  return Math.max(killed, groups.length);
}

const startTimeoutMs = 5000;
const endTimeoutMs = 5000;
const keptBytes = 2000;

/** A process that keeps a PID namespace for several sandboxes; all processes in the namespace end with it. */
export interface Holder {
  /** The namespace in the launcher's or Docker engine's notation; valid while the holder lives. */
  readonly pidNamespace: string;
  /** Resolves when the holder has ended, for whatever reason. */
  readonly exited: Promise<void>;
  /** Ends the holder and all processes in the namespace. */
  end(): Promise<void>;
}

/** A PID namespace that containers share. */
export interface SharedNamespace {
  /** Id of the MSContainer, which its containers report. */
  id: string;
  /** As Holder.pidNamespace. */
  pidNamespace: string;
}

/** Settings of a container besides its spec. */
export interface LaunchOptions {
  shared?: SharedNamespace;
  /** The namespace whose code is loaded before the hello: its network rules hold from the start. */
  forNamespace?: string;
  /** As in ContainerFactory.create. */
  ahead?: boolean;
}

/** Flag after the tag in a holder's command line. */
const holdFlag = '--hold';

/**
 * Starts a holder; needs root. `tag` identifies leftovers, `userId` is the user of the namespace's first process. Rejects
 * with an Error that names the reason of a failure.
 */
export async function startHolder(launcherPath: string, tag: string, userId: number): Promise<Holder> {
  const { child, stdout, stderr, closed } = startProcess(launcherPath, [tag, holdFlag, String(userId)], { env: {} });
  const said = { stdout: '', stderr: '' };
  const exited = deferred<void>();
  const holding = deferred<boolean>();
  void closed.then(() => exited.resolve());
  stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr = (said.stderr + text).slice(-keptBytes)));
  stdout.setEncoding('utf8').on('data', (text: string) => {
    said.stdout = (said.stdout + text).slice(-keptBytes);
    if (said.stdout.includes('holding')) holding.resolve(true);
  });
  void exited.promise.then(() => holding.resolve(false));
  const timer = setTimeout(() => child.kill('SIGKILL'), startTimeoutMs);
  const held = await holding.promise;
  clearTimeout(timer);
  if (!held) throw new Error(reasonOf(said.stderr));
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    const late = setTimeout(() => exited.resolve(), endTimeoutMs);
    await exited.promise;
    clearTimeout(late);
  };
  return { pidNamespace: `/proc/${child.pid}/ns/pid_for_children`, exited: exited.promise, end };
}

function reasonOf(complaint: string): string {
  const [, , reason] = complaint.trim().split('\n');
  return reason ?? (complaint.trim() || 'it ended at once');
}
