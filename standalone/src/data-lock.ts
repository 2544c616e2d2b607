import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Another server uses the data folder. */
export class DataFolderInUseError extends Error {
  override name = 'DataFolderInUseError';
}

/** A process's start time in clock ticks since boot, so that a reused pid is not taken for it; empty where unknown. */
function startTicks(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function isAlive(pid: number, ticks: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return startTicks(pid) === ticks;
}

function holder(file: string): number | undefined {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const [pid = '', ticks = ''] = content.trim().split(' ');
  return isAlive(Number(pid), ticks) ? Number(pid) : undefined;
}

/**
 * Takes the data folder for this process, creating it if absent; the function returned gives it back. A lock that a
 * dead process left is taken over. Throws DataFolderInUseError.
 */
export function lockDataFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'server.lock');
  for (;;) {
    try {
      writeFileSync(file, `${process.pid} ${startTicks(process.pid)}\n`, { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const pid = holder(file);
    if (pid !== undefined) {
      throw new DataFolderInUseError(`The data folder ${folder} is in use by process ${pid}; choose another with --data.`);
    }
    rmSync(file, { force: true });
  }
}
