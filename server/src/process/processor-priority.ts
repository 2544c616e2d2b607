import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** A value of `nice`: about nine times the processor share of a process at 0. */
const priority = -10;

/**
 * Raises the priority of this thread, so that neither functions nor other programs on a busy machine delay the server, and
 * of its session, because Linux may share the processors out among sessions. Does so only in a process that leads a session,
 * as a service does: from a terminal, the user's other programs there would be delayed. Without root (CAP_SYS_NICE) nothing
 * changes. Functions and the process's other threads (garbage collection, files) keep the usual priority: woken, these
 * threads would push this one off its processor.
 */
export function raiseProcessorPriority(): void {
  if (process.platform !== 'linux' || !leadsSession()) return;
  try {
    setPriority(priority);
    writeFileSync('/proc/self/autogroup', String(priority));
  } catch {
    return; // Not permitted, or a kernel without such groups: it runs as other programs do.
  }
}

function leadsSession(): boolean {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // Behind the command's name, which may itself hold spaces and parentheses: state, parent, group, session.
  const [, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(session) === process.pid;
}
