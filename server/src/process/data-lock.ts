import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, thisProcess } from '@gpuwhisk/common/system/process-identity';
import type { ProcessIdentity } from '@gpuwhisk/common/system/process-identity';

/** The data folder cannot be used: another server has locked it, or this process may not write there. */
export class DataFolderError extends Error {
  override name = 'DataFolderError';
}

function holder(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Closes a folder to other users, who could read keys and code below it. Throws DataFolderError if a folder with content is
 * open: it may be something else than a data folder, such as /tmp.
 */
function closeToOthers(folder: string): void {
  const mode = statSync(folder).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  if (readdirSync(folder).length > 0) {
    throw new DataFolderError(
      `The data folder ${folder} is open to other users (mode ${mode.toString(8).padStart(4, '0')}, expected 0700); run 'chmod 700 ${folder}', or choose another with --data.`,
    );
  }
  chmodSync(folder, 0o700);
}

/**
 * Locks the data folder for this process, and creates it if absent, closed to other users. Returns a function that unlocks it. A lock that a
 * dead process left is taken over. Throws DataFolderError.
 */
export function lockDataFolder(folder: string): () => void {
  try {
    return lock(folder);
  } catch (error) {
    if (error instanceof DataFolderError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const told =
      code === 'ENOSPC'
        ? `The disk of the data folder ${folder} is full: free 100 MB there, and start again.`
        : `The data folder ${folder} cannot be used (${message}); choose another with --data.`;
    throw new DataFolderError(told, { cause: error });
  }
}

function lock(folder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  closeToOthers(folder);
  const file = join(folder, 'server.lock');
  for (;;) {
    try {
      writeFileSync(file, JSON.stringify(thisProcess()), { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const other = holder(file);
    if (other !== undefined && isRunning(other)) {
      throw new DataFolderError(
        `The data folder ${folder} is in use by process ${other.pid}; choose another with --data.`,
      );
    }
    rmSync(file, { force: true });
  }
}
