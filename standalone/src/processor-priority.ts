import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** As `nice` has it: about nine times the share of what has none. */
const priority = -10;
const groupFile = '/proc/self/autogroup';

/**
 * Has this process go before others on the processors, its session too where Linux shares them out among sessions, so
 * that neither functions nor other work on a busy machine slow down what serves them all. Without root (CAP_SYS_NICE)
 * nothing changes. Functions have the usual priority.
 */
export function goFirst(): void {
  if (process.platform !== 'linux') return;
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), priority);
    if (!readFileSync(groupFile, 'utf8').endsWith(' nice 0\n')) return;
    writeFileSync(groupFile, String(priority));
    // It may be the session of a terminal, which goes on.
    process.on('exit', () => writeFileSync(groupFile, '0'));
  } catch {
    return; // Not permitted, or a kernel without such groups: it runs as other programs do.
  }
}
