import { readFile } from 'node:fs/promises';

/** `/proc` counts in hundredths of a second, whatever the kernel's own tick. */
const msPerTick = 10;
/** Of what follows the name in `/proc/<pid>/stat`: the first of utime, stime, cutime and cstime. */
const firstTime = 11;

/**
 * Processor time of the processes, all together, and of those children of theirs that they have waited for, ms;
 * undefined if none of them lives.
 */
export async function processorMsOf(pids: readonly number[]): Promise<number | undefined> {
  const times = await Promise.all(pids.map(ticksOf));
  const known = times.filter((ticks) => ticks !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, ticks) => sum + ticks, 0) * msPerTick;
}

async function ticksOf(pid: number): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(firstTime, firstTime + 4).reduce((sum, field) => sum + Number(field), 0);
  } catch {
    return undefined; // It has ended.
  }
}
