import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const processes = '/proc';
/** What a process was started with, and what it sees mounted. */
const tellingFiles = ['cmdline', 'mountinfo'];

/** Which of these names of files a process of this machine was given; undefined where processes cannot be seen. */
export async function namedByProcesses(names: readonly string[]): Promise<Set<string> | undefined> {
  const pids = await listed(processes);
  if (pids === undefined) return undefined;
  const named = new Set<string>();
  for (const pid of pids) {
    for (const file of /^\d+$/.test(pid) ? tellingFiles : []) {
      // It may have ended since.
      const text = await readFile(join(processes, pid, file), 'utf8').catch(() => '');
      for (const name of names) if (text.includes(name)) named.add(name);
    }
  }
  return named;
}

async function listed(folder: string): Promise<string[] | undefined> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
