import { readFile, stat } from 'node:fs/promises';
import { workloadTokenVariable } from '@gpuwhisk/common/workload-guard';

/** The facts of a process that tell whose workload it is. */
export interface ProcessClaims {
  /** Numeric id of its user. */
  user: number;
  /** The workload's token in its environment; absent: it has none, or the environment is hidden from this user. */
  token?: string;
}

/** Facts about the host's processes that concern GPUs. */
export interface HostProcesses {
  /**
   * The container of a process, among `containers`, which are keyed by the id of their first process; undefined if it is in
   * none. Never rejects.
   */
  containerOf(pid: number, containers: ReadonlyMap<number, string>): Promise<string | undefined>;
  /** Whether the process exists and is no zombie. */
  isAlive(pid: number): Promise<boolean>;
  /** Start of a process, in ticks since the boot; undefined if the process has ended. */
  startOf(pid: number): Promise<number | undefined>;
  /** Whose workload a process claims to be; undefined if the process has ended. Never rejects. */
  claimsOf(pid: number): Promise<ProcessClaims | undefined>;
}

/** Ancestors that are checked: a launcher, an init, a proxy and its children are few. */
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
    // In a shared PID namespace, a process whose parent has ended gets a new parent outside the container, but keeps its
    // control group.
    const groups = new Set((await read(`/proc/${pid}/cgroup`)).split('\n').map((line) => line.split('/').at(-1)));
    return [...containers.values()].find((container) => groups.has(container));
  },
  isAlive: async (pid) => isRunning(await statusOf(pid)),
  async startOf(pid) {
    const status = await statusOf(pid);
    return isRunning(status) ? status.start : undefined;
  },
  async claimsOf(pid) {
    const owner = await stat(`/proc/${pid}`).catch(() => undefined);
    if (owner === undefined) return undefined;
    const name = `${workloadTokenVariable}=`;
    const variable = (await read(`/proc/${pid}/environ`)).split('\0').find((one) => one.startsWith(name));
    return { user: owner.uid, ...(variable !== undefined && { token: variable.slice(name.length) }) };
  },
};

interface ProcessStatus {
  state: string;
  parent: number;
  start: number;
}

const isRunning = (status: ProcessStatus | undefined): status is ProcessStatus =>
  status !== undefined && status.state !== 'Z' && status.state !== 'X';

/** State, parent and start of a process, from the fields after the name: the first, the second and the 20th. */
async function statusOf(pid: number): Promise<ProcessStatus | undefined> {
  const text = await read(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The name, in parentheses, may contain any character.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parent: Number(fields[1]), start: Number(fields[19]) };
}

/** A file's text; empty if the process has ended or is hidden from this user. */
function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
