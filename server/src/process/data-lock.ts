import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
 * Locks the data folder for this process and creates it if absent. Returns a function that unlocks it. A lock that a
 * dead process left is taken over. Throws DataFolderError.
 */
export function lockDataFolder(folder: string): () => void {
  try {
    return lock(folder);
  } catch (error) {
    if (error instanceof DataFolderError) throw error;
    throw new DataFolderError(
      `The data folder ${folder} cannot be used (${(error as Error).message}); choose another with --data.`,
      { cause: error },
    );
  }
}

function lock(folder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
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
