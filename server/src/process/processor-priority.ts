import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** As `nice` has it: about nine times the share of what has none. */
const priority = -10;

/**
 * Has this thread go before others on the processors, so that neither functions nor other work on a busy machine slow
 * down what serves them all; its session, too, as Linux may share the processors out among sessions. Only where it leads
 * a session, as a service does: in somebody's terminal all else there would go behind. Without root (CAP_SYS_NICE) nothing
 * changes. Functions have the usual priority, and the process's other threads (garbage collection, files): woken, they
 * would push this one off its processor.
 */
export function goFirst(): void {
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
