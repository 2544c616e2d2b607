// A process as a service of the machine: its priority, the sockets that the service manager opens for it, and its notice to that.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A value of `nice`: about nine times the processor share of a process at 0. */
const priority = -10;
/** The kernel's weight of that `nice`, in the unit of `cpu.shares`. */
const shares = 9548;

/**
 * Raises the priority of this thread, so that functions and other programs on a busy machine do not delay the server.
 * Linux may divide processor time among sessions first. A process that leads its session, as a service does, therefore
 * raises its session, too. In a terminal's session that would raise the user's other programs, and would last after this
 * process: there, the process moves to a control group of its own, if the functions' groups are of version 1. Without
 * root (CAP_SYS_NICE) nothing changes. Functions and the process's other threads (garbage collection, files) keep the
 * usual priority: with a raised one, these threads would preempt this thread when they wake up.
 */
export function raiseProcessorPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    if (leadsSession()) {
      setPriority(priority);
      writeFileSync('/proc/self/autogroup', String(priority));
    } else if (joinOwnGroup()) setPriority(priority);
  } catch {
    return; // Not permitted, or the kernel has no autogroups: the priority stays the usual one.
  }
}

function leadsSession(): boolean {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // The fields after the command's name, which may contain spaces and parentheses: state, parent, group, session.
  const [, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(session) === process.pid;
}

/** Prefix of a server's control group; its process's number follows. */
const groupPrefix = 'gpuwhisk-server-';

/**
 * Moves this process to a control group of version 1 with `shares`, until it exits. Returns false if there is none: of
 * version 2, a process may not leave the group in which its service manager watches it. Throws if it is not permitted.
 */
function joinOwnGroup(): boolean {
  const hierarchy = version1Mount('cpu');
  // Functions have groups of version 1 only where memory has. Otherwise they would stay in this process's group.
  if (hierarchy === undefined || version1Mount('memory') === undefined) return false;
  const groups = readFileSync('/proc/self/cgroup', 'utf8');
  const own = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(groups)?.[1];
  if (own === undefined) return false;
  removeUnusedGroups(hierarchy);
  const group = join(hierarchy, `${groupPrefix}${process.pid}`);
  mkdirSync(group);
  try {
    writeFileSync(join(group, 'cpu.shares'), String(shares));
    writeFileSync(join(group, 'cgroup.procs'), String(process.pid));
  } catch (error) {
    rmdirSync(group);
    throw error;
  }
  process.once('exit', () => {
    try {
      writeFileSync(join(hierarchy, own, 'cgroup.procs'), String(process.pid));
      rmdirSync(group);
    } catch {
      return; // A child that outlives this process is still in the group: a later server removes it.
    }
  });
  return true;
}

/** The mount point of a controller's hierarchy of version 1; undefined if it has none. */
function version1Mount(controller: string): string | undefined {
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, point, type, options = ''] = line.split(' ');
    if (type === 'cgroup' && options.split(',').includes(controller)) return point;
  }
  return undefined;
}

/** Removes the groups of servers that were killed. */
function removeUnusedGroups(hierarchy: string): void {
  for (const name of readdirSync(hierarchy).filter((each) => each.startsWith(groupPrefix))) {
    try {
      rmdirSync(join(hierarchy, name));
    } catch {
      continue; // Its server runs.
    }
  }
}

/** The first descriptor that systemd passes. */
const firstPassed = 3;

/**
 * Descriptors of the listening sockets that systemd has opened for this process, in the order of its socket unit; empty if
 * there are none. systemd holds them over a restart, so that connections wait in place of being refused.
 */
export function passedSockets({ LISTEN_PID: pid, LISTEN_FDS: count }: NodeJS.ProcessEnv): readonly number[] {
  // A child inherits the variables, and not the sockets.
  if (Number(pid) !== process.pid) return [];
  return Array.from({ length: Number(count) }, (_, index) => firstPassed + index);
}

/** Time limit of the program, ms. */
const notifyTimeoutMs = 10_000;

/** The program that notifies the service manager. */
const notifyProgram = 'systemd-notify';

/**
 * Tells systemd that this process is ready, so that a rolling restart may continue with the next process. Resolves at
 * once with false if NOTIFY_SOCKET is not set. Rejects with the program's error; the unit's start then times out.
 */
export async function notifyReady(env: NodeJS.ProcessEnv): Promise<boolean> {
  if (env.NOTIFY_SOCKET === undefined) return false;
  // Node.js has no Unix datagram sockets. The program waits until systemd has read the message, and so stays its known
  // sender.
  await promisify(execFile)(notifyProgram, ['--ready', '--status=It serves.'], { env, timeout: notifyTimeoutMs });
  return true;
}
