import { runProgram } from '../../host/run-program.js';
import { ShareError } from './share-enforcer.js';
import type { ShareCeiling } from './share-enforcer.js';

const timeoutMs = 10_000;

/** An MPS control daemon, by the directories that it keeps. */
export interface MpsDirectories {
  pipe: string;
  log: string;
}

/** How the control program is run. */
export interface MpsProgram {
  /** Default: `nvidia-cuda-mps-control` on PATH. */
  program?: string;
  /** What it needs besides PATH: where the stand-in is found. */
  env?: Record<string, string>;
}

/** The control program of one MPS daemon, protocol version 2. Everything rejects with ShareError. */
export interface MpsControl {
  /**
   * Starts the daemon for one device or slice, by UUID; it outlives this process. Its server takes clients of all users at
   * once where the program can do that, else of one at a time.
   */
  start(visible: string): Promise<void>;
  /** Whether a daemon answers. */
  answers(): Promise<boolean>;
  /** Host pids of the servers: one for each user that has clients. */
  servers(): Promise<number[]>;
  /** Host pids of a server's clients. */
  clients(server: number): Promise<number[]>;
  /** Whether a fatal fault has hit the clients of one of the servers: it lets nobody in until they are gone. */
  isFaulted(servers: readonly number[]): Promise<boolean>;
  terminate(server: number, client: number): Promise<void>;
  /** Holds clients of the servers that run, and of those that start later, to a ceiling; of each of so many devices. */
  limit(ceiling: ShareCeiling, devices: number): Promise<void>;
  /** The daemon ends, and with it the servers. */
  quit(): Promise<void>;
}

const isAbsent = (text: string): boolean => /cannot find mps control daemon/i.test(text);

function pidsIn(text: string): number[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => /^\d+$/.test(line)).map(Number);
}

/** Speaks to the daemon of these directories, whoever started it. */
export function mpsControl(directories: MpsDirectories, { program, env }: MpsProgram): MpsControl {
  const run = (args: string[], more: Record<string, string>, input?: string): Promise<string> =>
    runProgram(program ?? 'nvidia-cuda-mps-control', args, {
      timeoutMs,
      env: {
        PATH: process.env.PATH,
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

  const servers = async (): Promise<number[]> => pidsIn(await ask('get_server_list'));

  /** The commands that set a ceiling for the next server, or for one that runs; what they have set is read back. */
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
      // For all users at once: a workload of one beside functions of another. Older programs do not know the word.
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
    clients: async (server) => pidsIn(await ask(`get_client_list ${server}`)),
    async isFaulted(servers) {
      const commands = servers.map((server) => `get_server_status ${server}`);
      return servers.length > 0 && /fault/i.test(await ask(commands.join('\n')));
    },
    async terminate(server, client) {
      const said = await ask(`terminate_client ${server} ${client}`);
      if (/not found|invalid|refused/i.test(said)) throw new ShareError(said.trim());
    },
    async limit(ceiling, devices) {
      // The next server's first: one that starts meanwhile has it.
      await setCeiling(ceiling, devices);
      for (const server of await servers()) await setCeiling(ceiling, devices, server);
    },
    async quit() {
      await ask('quit');
    },
  };
}
