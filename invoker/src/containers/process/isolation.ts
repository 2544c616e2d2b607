import { access, constants } from 'node:fs/promises';
import { noCgroups } from './cgroups.js';
import type { Cgroups } from './cgroups.js';
import { innerId } from './host-view.js';
import type { HostView } from './host-view.js';
import { launcherResult, sendSpec, startLauncher } from './launcher.js';
import type { Words } from './launcher-spec.js';
import type { ActionNetwork } from './network.js';

const probeTimeoutMs = 5000;
const maxProbes = 10;
/** The slot that trials have. */
export const probeSlot = 0;

/** Which measures this host allows. */
export interface Isolation {
  /** Whether there is a launcher at all. */
  launcher: boolean;
  namespaces: ReadonlySet<string>;
  freshProc: boolean;
  /** Whether each sandbox runs as a user of its own, or of the platform's in a user namespace. */
  ownUser: boolean;
  filter: boolean;
  cgroups: Cgroups;
  network: ActionNetwork | undefined;
}

/** No isolation whatever. */
export const noIsolation: Isolation = {
  launcher: false,
  namespaces: new Set(),
  freshProc: false,
  ownUser: false,
  filter: false,
  cgroups: noCgroups,
  network: undefined,
};

const allNamespaces = ['user', 'mount', 'pid', 'ipc', 'uts', 'net', 'cgroup'];

/** What a sandbox consists of besides its limits and its runtime. */
export interface Frame {
  rootFolder: string;
  actionFolder: string;
  outerId: number;
  slot: number;
  tmpBytes: number;
  view: HostView;
  /** A PID namespace to share with others, instead of one of its own; see canShare. */
  pidNamespace?: string | undefined;
}

/** The part of a launcher's spec that isolates; the same for the probe and for every sandbox. */
export function frameWords(isolation: Isolation, frame: Frame): Words {
  const { pidNamespace } = frame;
  const own = [...isolation.namespaces].filter((name) => name !== 'pid' || pidNamespace === undefined);
  const words: Words = own.flatMap((name) => ['namespace', name]);
  if (pidNamespace !== undefined) words.push('join-pid', pidNamespace, 'domain');
  if (isolation.ownUser) words.push('id', String(innerId), String(frame.outerId));
  words.push('own', frame.actionFolder, 'hostname', 'action');
  if (isolation.namespaces.has('mount')) {
    words.push('root', frame.rootFolder);
    const { freshProc } = isolation;
    words.push(...frame.view.words({ freshProc, shmBytes: frame.tmpBytes, tmpBytes: frame.tmpBytes }));
    words.push('bind', frame.actionFolder, '/action', 'rw', 'cwd', '/action');
  } else {
    words.push('cwd', frame.actionFolder);
  }
  if (isolation.filter) words.push('filter');
  if (isolation.network) {
    const veth = isolation.network.veth(frame.slot);
    words.push('veth', veth.name, veth.outside, veth.inside, String(veth.prefixLength));
  }
  return words;
}

/** The isolation without a measure that failed, and what that means; undefined if nothing is left to do without. */
function weaken(isolation: Isolation, measure: string): { isolation: Isolation; lost: string } | undefined {
  const fewer = (...names: string[]): ReadonlySet<string> =>
    new Set([...isolation.namespaces].filter((name) => !names.includes(name)));
  const lose = (lost: string, changed: Partial<Isolation>): { isolation: Isolation; lost: string } => ({
    isolation: { ...isolation, ...changed },
    lost,
  });
  switch (measure) {
    case 'user':
      if (!isolation.namespaces.has('user')) break;
      return lose('Functions run without a user namespace of their own', { namespaces: fewer('user') });
    case 'cgroup-view':
      return lose('Functions see the names of control groups', { namespaces: fewer('cgroup') });
    case 'uts':
      return lose("Functions share the host's name", { namespaces: fewer('uts') });
    case 'proc':
      if (!isolation.freshProc) break;
      return lose("Functions see the host's /proc", { freshProc: false });
    case 'net':
      if (isolation.network)
        return lose("Functions reach neither the network nor the platform's API", { network: undefined });
      return lose('Functions have no network of their own', { namespaces: fewer('net') });
    case 'cgroup':
      if (isolation.cgroups === noCgroups) break;
      return lose('Control groups are not to be had', { cgroups: noCgroups });
    case 'filter':
      return lose('System calls of functions are not filtered', { filter: false });
    case 'namespaces':
      if (isolation.namespaces.size === 0) break;
      return lose('Functions see the file system, the network and the processes of the host', {
        namespaces: new Set(),
        freshProc: false,
        network: undefined,
      });
    case 'mount':
    case 'exec':
      if (isolation.namespaces.has('mount')) {
        return lose('Functions see the file system of the host', { namespaces: fewer('mount'), freshProc: false });
      }
      // The folder or the program may lie where only the platform's user gets.
      if (!isolation.ownUser) break;
      return lose('Functions run as the user of the platform', { ownUser: false, namespaces: fewer('user') });
  }
  return undefined;
}

/**
 * Whether sandboxes may lie in one PID namespace: each needs a user of its own, and a control group that it ends by.
 * What else it takes (Landlock, a /proc that hides others) the trial shows.
 */
export function canShare({ namespaces, ownUser, freshProc, filter, cgroups }: Isolation): boolean {
  const separate = ['user', 'mount', 'pid', 'ipc', 'net'].every((name) => namespaces.has(name));
  return process.getuid?.() === 0 && separate && ownUser && freshProc && filter && cgroups !== noCgroups;
}

/** Tries a sandbox; why it does not start, as a measure and a reason on lines of their own, or undefined. */
export async function probe(
  path: string,
  tag: string,
  isolation: Isolation,
  frame: Frame,
): Promise<string | undefined> {
  const { cgroups } = isolation;
  const id = 'probe';
  const process = startLauncher(path, tag, cgroups.makeWords(id));
  const ended = launcherResult(process);
  const timer = setTimeout(() => process.child.kill('SIGKILL'), probeTimeoutMs);
  const inside = isolation.namespaces.has('mount') ? '/run/probe' : path;
  sendSpec(process, [
    ...cgroups.limitWords(id, { memoryBytes: 64 * 1024 * 1024, pids: 16, givesWay: false }),
    ...frameWords(isolation, frame),
    ...(isolation.namespaces.has('mount') ? ['bind', path, inside, 'ro'] : []),
    ...['exec', inside, '--true'],
  ]);
  const { reports, status } = await ended;
  clearTimeout(timer);
  await cgroups.remove(id);
  const error = reports.find((report) => report.startsWith('error\n'));
  if (error !== undefined) return error.slice('error\n'.length);
  return status === 0 ? undefined : `exec\nthe trial program ended with status ${status}`;
}

/**
 * Tries a sandbox, dropping each measure that the host forbids, until one starts. `notes` says in plain lines what
 * was dropped and why.
 */
export async function probeIsolation(
  path: string,
  tag: string,
  wanted: { cgroups: Cgroups; network: ActionNetwork | undefined },
  frame: Omit<Frame, 'slot'>,
): Promise<{ isolation: Isolation; notes: string[] }> {
  const executable = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!executable) {
    const note = 'Functions run without isolation, as the user of the platform: the sandbox launcher is not built.';
    return { isolation: noIsolation, notes: [note] };
  }
  let isolation: Isolation = {
    launcher: true,
    namespaces: new Set(allNamespaces),
    freshProc: true,
    ownUser: true,
    filter: true,
    ...wanted,
  };
  const notes: string[] = [];
  for (let tries = 0; tries < maxProbes; tries++) {
    const failure = await probe(path, tag, isolation, { ...frame, slot: probeSlot });
    if (failure === undefined) return { isolation, notes };
    const [measure = '', reason = ''] = failure.split('\n');
    const weaker = weaken(isolation, measure);
    notes.push(`${weaker?.lost ?? 'Functions run without isolation, as the user of the platform'}: ${reason}.`);
    if (!weaker) break;
    isolation = weaker.isolation;
  }
  return { isolation: noIsolation, notes };
}

/** Plain lines about limits that are weaker than they should be. `root`: sandboxes have users of their own. */
export function limitNotes({ launcher, cgroups }: Isolation, root: boolean): string[] {
  if (!launcher) return []; // Nothing is limited then, as the note on isolation says.
  const notes: string[] = [];
  if (!cgroups.limitsMemory) {
    notes.push('Functions are held to their memory by a watch: this host gives no control groups with memory limits.');
  }
  if (!cgroups.limitsPids) {
    notes.push('The processes of functions are limited per user only: this host gives no pids control group.');
  }
  if (!root) notes.push('Without root all functions run as the user of the platform.');
  return notes;
}
