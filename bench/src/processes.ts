import { readdirSync, readFileSync } from 'node:fs';

/** One process, from /proc/PID/stat. */
export interface ProcessStat {
  pid: number;
  parentPid: number;
  /** User and system time, s. */
  cpuS: number;
  /** User and system time of its ended children that were waited for, s. */
  endedChildrenCpuS: number;
}

/** A process and its descendants at one moment. */
export interface ProcessTree {
  root: ProcessStat;
  descendants: readonly ProcessStat[];
}

/** Processor time spent since a start, s. */
export interface CpuTime {
  serverS: number;
  /** CPU time of all descendants, ended ones included. */
  sandboxesS: number;
}

// The kernel reports times in USER_HZ, which is 100 on every architecture that Node supports.
const ticksPerS = 100;

/** Reads one line of /proc/PID/stat (proc(5)); the name in parentheses may hold spaces and parentheses. */
export function parseStat(line: string): ProcessStat {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => {
    const value = Number(fields[number - 3]);
    if (!Number.isFinite(value)) throw new Error(`/proc stat line lacks field ${number}: ${line}`);
    return value;
  };
  return {
    pid: Number.parseInt(line, 10),
    parentPid: field(4),
    cpuS: (field(14) + field(15)) / ticksPerS,
    endedChildrenCpuS: (field(16) + field(17)) / ticksPerS,
  };
}

/** The process `pid` and its descendants. Throws if `pid` does not exist. */
export function readTree(pid: number): ProcessTree {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(name) ?? []);
  const root = all.find((candidate) => candidate.pid === pid);
  if (!root) throw new Error(`process ${pid} is gone`);
  return { root, descendants: descendantsOf(pid, all) };
}

function readStat(pid: string): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    // The process ended between the listing and the reading.
    return undefined;
  }
}

/** Descendants of `pid` among `all`, nearest first. */
export function descendantsOf(pid: number, all: readonly ProcessStat[]): ProcessStat[] {
  const found: ProcessStat[] = [];
  let parents = new Set([pid]);
  while (parents.size > 0) {
    const children = all.filter((candidate) => parents.has(candidate.parentPid));
    found.push(...children);
    parents = new Set(children.map((child) => child.pid));
  }
  return found;
}

/** Processor time of a tree since its start. */
export function cpuTime(tree: ProcessTree): CpuTime {
  const below = tree.descendants.map((one) => one.cpuS + one.endedChildrenCpuS);
  return {
    serverS: tree.root.cpuS,
    sandboxesS: tree.root.endedChildrenCpuS + below.reduce((sum, value) => sum + value, 0),
  };
}

/** Processor time that the machine has spent since its start, interrupts included, s. */
export function machineCpuS(): number {
  const first = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] as string;
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = first
    .split(/ +/)
    .slice(1)
    .map(Number);
  return (user + nice + system + interrupts + softInterrupts) / ticksPerS;
}

/** Memory of a process, MiB. */
export interface Memory {
  /** Resident memory. */
  rssMiB: number;
  /** Proportional set size: pages that n processes share count 1/n. */
  pssMiB: number;
  /** The part of the resident memory that is no file's: heaps, buffers and stacks. */
  anonMiB: number;
}

/** Memory of a process; 0 for a process that does not exist. */
export function memoryOf(pid: number): Memory {
  try {
    return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return { rssMiB: 0, pssMiB: 0, anonMiB: 0 };
    throw error;
  }
}

/** Reads /proc/PID/smaps_rollup. */
export function parseRollup(text: string): Memory {
  const kiB = (name: string): number => Number(text.match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))?.[1] ?? 0);
  return { rssMiB: kiB('Rss') / 1024, pssMiB: kiB('Pss') / 1024, anonMiB: kiB('Anonymous') / 1024 };
}

/** Memory of a whole tree, MiB. `rssMiB` counts shared pages once for each process, `pssMiB` once in all. */
export function treeMemory(tree: ProcessTree): { rssMiB: number; pssMiB: number } {
  const each = [tree.root, ...tree.descendants].map((one) => memoryOf(one.pid));
  return {
    rssMiB: each.reduce((sum, one) => sum + one.rssMiB, 0),
    pssMiB: each.reduce((sum, one) => sum + one.pssMiB, 0),
  };
}
