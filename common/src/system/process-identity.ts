import { readFileSync } from 'node:fs';

/** A process, told apart from a later one with the same number. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's ticks since boot, with the boot's id; absent where /proc does not tell. */
  started?: string;
}

function startedAt(pid: number): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The fields behind the command's name, which may itself hold spaces and parentheses; the start is field 22.
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return `${boot} ${ticks}`;
  } catch {
    return undefined;
  }
}

/** This process. */
export function thisProcess(): ProcessIdentity {
  const started = startedAt(process.pid);
  return started === undefined ? { pid: process.pid } : { pid: process.pid, started };
}

/** Whether the process still runs. Without start times a process of the same number counts as the same. */
export function isRunning({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there and belongs to another user.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const now = startedAt(pid);
  return started === undefined || now === undefined || now === started;
}
