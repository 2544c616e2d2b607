import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** A process and the folders of its control groups. */
export interface Trace {
  pid: number;
  /** Start time, which distinguishes the process from a later one with its number. */
  started: string;
  command: string;
  cgroups: string[];
}

interface Stat {
  parent: number;
  started: string;
  state: string;
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // The process ended.
  }
}

function statOf(pid: number): Stat | undefined {
  const text = readOrEmpty(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The fields behind the command's name, which may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parent: Number(fields[1]), started: fields[19] ?? '' };
}

const mounts = readOrEmpty('/proc/self/mounts')
  .split('\n')
  .map((line) => line.split(' '))
  .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
  .map(([, point = '', type = '', options = '']) => ({ point, type, options: options.split(',') }));

/** Folders of the control groups that the process is in. */
export function cgroupsOf(pid: number): string[] {
  return readOrEmpty(`/proc/${pid}/cgroup`)
    .split('\n')
    .flatMap((line) => {
      const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      const mount = mounts.find(({ type, options }) =>
        controllers === '' ? type === 'cgroup2' : controllers.split(',').every((name) => options.includes(name)),
      );
      // An exiting process is shown in the root.
      return mount && path.length > 1 ? [join(mount.point, path)] : [];
    });
}

/** Every process below `pid`: launchers, sandboxes, and all that functions started. */
export function descendants(pid: number): Trace[] {
  const children = new Map<number, number[]>();
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = statOf(Number(name));
    if (stat === undefined) continue;
    stats.set(Number(name), stat);
    children.set(stat.parent, [...(children.get(stat.parent) ?? []), Number(name)]);
  }
  const own = new Set(cgroupsOf(pid));
  const found: Trace[] = [];
  const visit = (parent: number): void => {
    for (const child of children.get(parent) ?? []) {
      found.push({
        pid: child,
        started: stats.get(child)?.started ?? '',
        command: readOrEmpty(`/proc/${child}/cmdline`).replaceAll('\0', ' '),
        cgroups: cgroupsOf(child).filter((folder) => !own.has(folder)),
      });
      visit(child);
    }
  };
  visit(pid);
  return found;
}

/** The processes that still run. */
export function alive(traces: readonly Trace[]): Trace[] {
  return traces.filter(({ pid, started }) => {
    const stat = statOf(pid);
    return stat?.started === started && stat.state !== 'Z';
  });
}

/** The control groups of `traces` that still exist. */
export function remainingCgroups(traces: readonly Trace[]): string[] {
  return [...new Set(traces.flatMap(({ cgroups }) => cgroups))].filter((folder) => existsSync(folder));
}

function mountNamespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return ''; // The process ended.
  }
}

/** Command line of a launcher, and of what it clones until that runs a program of the sandbox. */
const launcher = / gpuwhisk-[0-9a-f]{12} $/;

/**
 * Number of a platform's sandboxes: each has a mount namespace, or else a folder. One that was begun ahead, in which nothing
 * runs yet, is not counted.
 */
export function sandboxCount({ pid, dataDir }: { pid: number; dataDir: string }): number {
  const own = mountNamespaceOf(pid);
  const running = descendants(pid).filter(({ command }) => !launcher.test(command));
  const others = running.map((trace) => mountNamespaceOf(trace.pid));
  const namespaces = new Set(others.filter((name) => name !== '' && name !== own));
  return namespaces.size + readdirSync(join(dataDir, 'sandboxes')).filter((name) => !name.startsWith('.')).length;
}

/**
 * Open files and memory of the server itself. The memory excludes the pages of its database, which the kernel can drop.
 */
export function holdings(pid: number): { openFiles: number; memoryMiB: number } {
  const anonymous = /^RssAnon:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1];
  return { openFiles: readdirSync(`/proc/${pid}/fd`).length, memoryMiB: Number(anonymous) / 1024 };
}

/** How many connections from `clientPorts` to a server at `serverPort` (both IPv4, this host) the server holds. */
export function heldConnections(serverPort: number, clientPorts: readonly number[]): number {
  const established = '01';
  const closeWait = '08';
  return readOrEmpty('/proc/net/tcp')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', remote = '', state = '']) => {
      const port = (address: string): number => parseInt(address.split(':')[1] ?? '', 16);
      return (
        port(local) === serverPort &&
        clientPorts.includes(port(remote)) &&
        (state === established || state === closeWait)
      );
    }).length;
}
