import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { newKey, newUuid } from '@gpuwhisk/common/ids';
import type { Random } from '@gpuwhisk/common/system/random';
import { DataFolderError } from './data-lock.js';

/** In the data folder; `gpuwhisk operator-key` and wskadmin read it. */
const fileName = 'operator.key';

/**
 * The operator's `uuid:secret` of a data folder, which this process has locked; made, for its owner alone to read, where
 * there is none. Throws DataFolderError for a file that others may read or that has no key.
 */
export function operatorKeyOf(folder: string, random: Random): string {
  const file = join(folder, fileName);
  const kept = readKey(file);
  if (kept !== undefined) return kept;
  const key = `${newUuid(random)}:${newKey(random)}`;
  const written = openSync(`${file}.new`, 'w', 0o600);
  try {
    writeSync(written, `${key}\n`);
    fsyncSync(written);
  } finally {
    closeSync(written);
  }
  renameSync(`${file}.new`, file);
  return key;
}

function readKey(file: string): string | undefined {
  let mode: number;
  try {
    ({ mode } = statSync(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if ((mode & 0o077) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    throw new DataFolderError(
      `The operator's key ${file} may be read by others (mode ${octal}). Delete the file, and a new key is made.`,
    );
  }
  const key = readFileSync(file, 'utf8').trim();
  if (!/^[^\s:]+:[^\s:]{64}$/.test(key)) {
    throw new DataFolderError(`The file ${file} has no key (uuid:secret). Delete it, and a new key is made.`);
  }
  return key;
}
