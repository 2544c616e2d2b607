import { readFile } from 'node:fs/promises';

/** The processes of the host, as far as a GPU's users go. */
export interface HostProcesses {
  /**
   * The container that a process is in, of those that are given by the id of their first process; undefined: none of
   * them. Never rejects.
   */
  containerOf(pid: number, containers: ReadonlyMap<number, string>): Promise<string | undefined>;
  /** Whether there is such a process, and it is no zombie. */
  isAlive(pid: number): Promise<boolean>;
  /** When it started, in ticks since the boot; undefined: it has ended. */
  startOf(pid: number): Promise<number | undefined>;
}

/** Ancestors that are looked at: a launcher, an init, a proxy and what it starts are few. */
const maxDepth = 16;

/** The processes of this machine. */
export const systemProcesses: HostProcesses = {
  async containerOf(pid, containers) {
    let at = pid;
    for (let depth = 0; depth < maxDepth && at > 1; depth++) {
      const container = containers.get(at);
      if (container !== undefined) return container;
      const status = await statusOf(at);
      if (status === undefined) return undefined;
      at = status.parent;
    }
    // Where a PID namespace is shared, whose parent has ended gets one outside the container; its group stays.
    const groups = new Set((await read(`/proc/${pid}/cgroup`)).split('\n').map((line) => line.split('/').at(-1)));
    return [...containers.values()].find((container) => groups.has(container));
  },
  isAlive: async (pid) => isRunning(await statusOf(pid)),
  async startOf(pid) {
    const status = await statusOf(pid);
    return isRunning(status) ? status.start : undefined;
  },
};

interface ProcessStatus {
  state: string;
  parent: number;
  start: number;
}

const isRunning = (status: ProcessStatus | undefined): status is ProcessStatus =>
  status !== undefined && status.state !== 'Z' && status.state !== 'X';

/** Of the fields after the name: state, parent, and 18 later the start. */
async function statusOf(pid: number): Promise<ProcessStatus | undefined> {
  const text = await read(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The name, in parentheses, may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parent: Number(fields[1]), start: Number(fields[19]) };
}

/** Empty where the process has ended or is hidden from this user: the same to us. */
function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
