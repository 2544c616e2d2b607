// An MPS daemon: start, commands, end, and notes on disk by which a later process finds it.
import { createHash } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mpsClientLimit, sliceClientLimit } from '@gpuwhisk/common/gpu';
import type { Device } from '@gpuwhisk/common/gpu';
import { runProgram } from '../../host/programs.js';
import { removeTree } from '../../host/trees.js';
import { ShareError } from './share-enforcer.js';
import type { ShareCeiling } from './share-enforcer.js';

/** A control daemon of MPS that serves a device, a slice, or several devices together. */
export interface MpsDaemon {
  /** UUIDs of its devices. */
  devices: readonly string[];
  slice: string | undefined;
  /** CUDA_VISIBLE_DEVICES of the daemon's clients. */
  visible: string;
  pipe: string;
  control: MpsControl;
  /** Whether the platform started the daemon and may end it. */
  own: boolean;
  clientLimit: number;
  /** The last ceiling that was set. */
  ceiling?: ShareCeiling;
}

const longestSocketPath = 107;
/** Longest wait until ended processes have left the daemon's list, ms; usually a moment. */
const emptyWithinMs = 5000;
const pollMs = 50;

/** Largest number of clients of a device, or of a slice, which takes clients in proportion to its SMs. */
function clientLimitOf(device: Device | undefined, slice: string | undefined): number {
  const part = device?.slices.find(({ uuid }) => uuid === slice);
  return part && device ? sliceClientLimit(part, device) : mpsClientLimit;
}

function directoriesOf(folder: string, visible: string): MpsDirectories {
  const home = join(folder, createHash('sha256').update(visible).digest('hex').slice(0, 12));
  return { pipe: join(home, 'pipe'), log: join(home, 'log') };
}

/** The platform's daemon for devices, with its own directories below `folder`, running or not. Throws ShareError. */
export function ownDaemon(folder: string, program: MpsProgram, devices: readonly Device[], slice?: string): MpsDaemon {
  const uuids = devices.map(({ uuid }) => uuid);
  const visible = slice ?? uuids.join(',');
  const directories = directoriesOf(folder, visible);
  const { pipe } = directories;
  if (Buffer.byteLength(join(pipe, 'control')) > longestSocketPath) {
    throw new ShareError(`MPS cannot be started: the path ${pipe} is too long for a socket.`);
  }
  const control = mpsControl(directories, program);
  return { devices: uuids, slice, visible, pipe, control, own: true, clientLimit: clientLimitOf(devices[0], slice) };
}

/** The operator's daemon at `pipe`. Rejects with ShareError if there is none. */
export async function foreignDaemon(
  folder: string,
  program: MpsProgram,
  pipe: string,
  device: Device,
  slice?: string,
): Promise<MpsDaemon> {
  const visible = slice ?? device.uuid;
  const control = mpsControl({ pipe, log: directoriesOf(folder, visible).log }, program);
  if (!(await control.answers())) throw new ShareError(`No MPS daemon runs at ${pipe}, and gpu.manage.mps is off.`);
  const clientLimit = clientLimitOf(device, slice);
  return { devices: [device.uuid], slice, visible, pipe, control, own: false, clientLimit };
}

/** Starts one of the platform's daemons. Rejects with ShareError. */
export async function startDaemon(folder: string, { control, visible }: MpsDaemon): Promise<void> {
  const { pipe, log } = directoriesOf(folder, visible);
  await removeTree(pipe);
  await mkdir(pipe, { recursive: true });
  await mkdir(log, { recursive: true });
  await control.start(visible);
  if (!(await control.answers())) throw new ShareError(`MPS for ${visible} was started but does not answer.`);
}

/** Host pids of a daemon's clients, each with its server. Rejects with ShareError. */
export async function clientsOf({ control }: MpsDaemon): Promise<{ pid: number; server: number }[]> {
  const servers = await control.servers();
  return servers.flatMap((server) => server.clients.map((pid) => ({ pid, server: server.pid })));
}

/** Resolves once a daemon has no clients, or does not answer. Rejects with ShareError if clients stay. */
export async function untilEmpty(daemon: MpsDaemon): Promise<void> {
  const untilMs = performance.now() + emptyWithinMs;
  while ((await daemon.control.answers()) && (await clientsOf(daemon)).length > 0) {
    if (performance.now() >= untilMs) throw new ShareError(`MPS of ${daemon.visible} has clients.`);
    await sleep(pollMs);
  }
}

const timeoutMs = 10_000;

/** Directories of an MPS control daemon, which identify it. */
interface MpsDirectories {
  pipe: string;
  log: string;
}

/** Settings for runs of the control program. */
export interface MpsProgram {
  /** Default: `nvidia-cuda-mps-control` on PATH. */
  program?: string;
  /** Environment besides PATH, such as the stand-in's socket. */
  env?: Record<string, string>;
}

/** A server of an MPS daemon. */
export interface MpsServer {
  /** Host pid. */
  pid: number;
  /** Host pids of its clients. */
  clients: number[];
  /** Whether a client's fatal fault has hit all of them: the server accepts no client until they have ended. */
  faulted: boolean;
}

/** The control program of one MPS daemon, protocol version 2. All methods reject with ShareError. */
interface MpsControl {
  /**
   * Starts the daemon for devices or a slice, by UUID; the daemon outlives this process. Its server takes clients of all
   * users at once if the program supports that, else of one user at a time.
   */
  start(visible: string): Promise<void>;
  /** Whether a daemon answers. */
  answers(): Promise<boolean>;
  /** The servers, one for each user that has clients, as they are after the call. Calls at one time share a run. */
  servers(): Promise<MpsServer[]>;
  /** As servers, by a run of its own at once: a fault's traces last only until the clients have ended. */
  serversNow(): Promise<MpsServer[]>;
  terminate(server: number, client: number): Promise<void>;
  /** Sets the ceiling of clients of present and later servers, on each of `devices` devices. */
  limit(ceiling: ShareCeiling, devices: number): Promise<void>;
  /** Ends the daemon and its servers. */
  quit(): Promise<void>;
}

/** Runs of the list of servers in which they may change before the daemon counts as failed. */
const mostListRuns = 5;
/** A command whose answer, as `100.0`, differs from a list's and so marks the end of the answer before. */
const mark = 'get_default_active_thread_percentage';
const markAnswer = /^\s*\d+\.\d+\s*$/m;

const isAbsent = (text: string): boolean => /cannot find mps control daemon/i.test(text);

function pidsIn(text: string): number[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => /^\d+$/.test(line)).map(Number);
}

/** Runs `read` once at a time. A call during a run gets the next run's result, which all calls until its start share. */
function sharedRuns<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<Result> | undefined;
  return () => {
    if (next !== undefined) return next;
    const begin = (): Promise<Result> => {
      next = undefined;
      return read();
    };
    next = last.then(begin, begin);
    last = next;
    return next;
  };
}

/** The control program for the daemon of these directories. */
function mpsControl(directories: MpsDirectories, { program, env }: MpsProgram): MpsControl {
  const run = (args: string[], more: Record<string, string>, input?: string): Promise<string> =>
    runProgram(program ?? 'nvidia-cuda-mps-control', args, {
      timeoutMs,
      env: {
        PATH: process.env.PATH,
        // The server loads the driver's library, which may lie where only this variable names it.
        LD_LIBRARY_PATH: process.env.LD_LIBRARY_PATH,
        ...env,
        CUDA_MPS_PIPE_DIRECTORY: directories.pipe,
        CUDA_MPS_LOG_DIRECTORY: directories.log,
        ...more,
      },
      ...(input !== undefined && { input }),
    });

  const ask = async (command: string): Promise<string> => {
    let text: string;
    try {
      text = await run([], {}, `${command}\n`);
    } catch (error) {
      throw new ShareError(`MPS at ${directories.pipe} does not answer: ${(error as Error).message}`);
    }
    if (isAbsent(text)) throw new ShareError(`No MPS daemon runs at ${directories.pipe}.`);
    return text;
  };

  const answers = (): Promise<boolean> =>
    ask('get_server_list').then(
      () => true,
      () => false,
    );

  /** Answers to several commands, by one run where the program's answers can be told apart. */
  const askAll = async (commands: readonly string[]): Promise<string[]> => {
    const texts = (await ask(commands.flatMap((command) => [command, mark]).join('\n'))).split(markAnswer);
    if (texts.length === commands.length + 1) return texts.slice(0, -1);
    return Promise.all(commands.map(ask));
  };

  let known: number[] = [];
  const list = async (): Promise<MpsServer[]> => {
    for (let run = 0; run < mostListRuns; run += 1) {
      const asked = known;
      const each = asked.flatMap((pid) => [`get_client_list ${pid}`, `get_server_status ${pid}`]);
      const [pids = '', ...answers] = await askAll(['get_server_list', ...each]).catch((error: unknown) => {
        // Perhaps one of them has ended.
        if (asked.length === 0) throw error;
        return [];
      });
      known = pidsIn(pids);
      if (known.join() !== asked.join()) continue;
      return asked.map((pid, at) => ({
        pid,
        clients: pidsIn(answers[2 * at] ?? ''),
        faulted: /fault/i.test(answers[2 * at + 1] ?? ''),
      }));
    }
    throw new ShareError(`The servers of MPS at ${directories.pipe} changed in each of ${mostListRuns} lists.`);
  };
  const servers = sharedRuns(list);

  /** Sets a ceiling for the next server or for a running one, and reads it back to verify. */
  const setCeiling = async ({ percent, memoryMiB }: ShareCeiling, devices: number, server?: number): Promise<void> => {
    const [name, of] = server === undefined ? ['default_', ''] : ['', `${server} `];
    const limits = Array.from(
      { length: devices },
      (_, at) => `set_${name}device_pinned_mem_limit ${of}${at} ${memoryMiB}M`,
    );
    const said = await ask(
      [
        `set_${name}active_thread_percentage ${of}${percent}`,
        ...limits,
        `get_${name}active_thread_percentage ${of}`,
      ].join('\n'),
    );
    const got = said.trim().split('\n').at(-1) ?? '';
    if (Number.parseFloat(got) === percent) return;
    throw new ShareError(`MPS at ${directories.pipe} does not hold its clients to ${percent} %: ${said.trim()}`);
  };

  return {
    async start(visible) {
      const own = { CUDA_VISIBLE_DEVICES: visible };
      // Lets one server serve all users, so that a user's workload runs beside another's functions. Older programs reject
      // the option.
      await run(['-multiuser-server', '-d'], own).catch(() => undefined);
      if (await answers()) return;
      try {
        await run(['-d'], own);
      } catch (error) {
        throw new ShareError(`MPS cannot be started for ${visible}: ${(error as Error).message}`);
      }
    },
    answers,
    servers,
    serversNow: list,
    async terminate(server, client) {
      const said = await ask(`terminate_client ${server} ${client}`);
      if (/not found|invalid|refused/i.test(said)) throw new ShareError(said.trim());
    },
    async limit(ceiling, devices) {
      // Set for the next server first, so that a server that starts meanwhile has the ceiling.
      await setCeiling(ceiling, devices);
      for (const { pid } of await servers()) await setCeiling(ceiling, devices, pid);
    },
    async quit() {
      await ask('quit');
    },
  };
}

/** Changes on a machine for MPS, kept on disk so that a later process can undo changes that this one leaves. */
export interface MpsNotes {
  /** UUIDs of the devices whose compute mode was set. */
  exclusive: readonly string[];
  /** For each daemon that serves several devices, their UUIDs. */
  gangs: readonly (readonly string[])[];
}

export const noNotes: MpsNotes = { exclusive: [], gangs: [] };

const fileName = 'changed.json';

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/** The notes of earlier processes in a folder; empty notes if there is no such folder. Rejects with ShareError. */
export async function readMpsNotes(folder: string): Promise<MpsNotes> {
  const path = join(folder, fileName);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return noNotes;
    throw new ShareError(`${path} cannot be read: ${(error as Error).message}`);
  }
  try {
    const { exclusive, gangs } = JSON.parse(text) as Partial<Record<keyof MpsNotes, unknown>>;
    if (isTexts(exclusive) && Array.isArray(gangs) && gangs.every(isTexts)) return { exclusive, gangs };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new ShareError(`${path} is damaged: set the compute modes of the GPUs by hand, and remove the file.`);
}

/** Writes notes; resolves when they are on the disk. Rejects with ShareError. */
export async function writeMpsNotes(folder: string, notes: MpsNotes): Promise<void> {
  const path = join(folder, fileName);
  try {
    await mkdir(folder, { recursive: true });
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(notes));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  } catch (error) {
    throw new ShareError(`${path} cannot be written: ${(error as Error).message}`);
  }
}
