// A process as a service of the machine: its priority, and its notice to the service manager.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { promisify } from 'node:util';

/** A value of `nice`: about nine times the processor share of a process at 0. */
const priority = -10;

/**
 * Raises the priority of this thread, so that functions and other programs on a busy machine do not delay the server.
 * Also raises the priority of its session, because Linux may divide processor time among sessions. Acts only in a
 * process that leads a session, as a service does; in a terminal's session, the user's other programs would be delayed.
 * Without root (CAP_SYS_NICE) nothing changes. Functions and the process's other threads (garbage collection, files)
 * keep the usual priority: with a raised one, these threads would preempt this thread when they wake up.
 */
export function raiseProcessorPriority(): void {
  if (process.platform !== 'linux' || !leadsSession()) return;
  try {
    setPriority(priority);
    writeFileSync('/proc/self/autogroup', String(priority));
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
