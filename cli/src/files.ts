import { existsSync, readFileSync, statSync, writeFileSync, type Stats } from 'node:fs';
import { argumentError, messageOf, usageError, wrapError } from './errors.js';

/**
 * Reads a file that the user named.
 * @throws WskError with exit code 2 if there is none, 1 if it cannot be read.
 */
export function readUserFile(name: string): Buffer {
  const found = lookUp(name);
  if (!found) throw usageError(`File '${name}' is not a valid file or it does not exist`);
  if (found.isDirectory()) throw argumentError(`Unable to read the file '${name}': read ${name}: is a directory`);
  try {
    return readFileSync(name);
  } catch (error) {
    throw argumentError(`Unable to read the file '${name}': ${messageOf(error)}`);
  }
}

/** Like readUserFile, decoded as UTF-8. */
export function readTextFile(name: string): string {
  return readUserFile(name).toString('utf8');
}

/**
 * Writes a file that must not exist yet.
 * @throws WskError with exit code 2 if it exists or cannot be written.
 */
export function writeNewFile(name: string, content: Buffer): void {
  if (existsSync(name)) throw usageError(`The file '${name}' already exists`);
  try {
    writeFileSync(name, content, { flag: 'wx' });
  } catch (error) {
    throw usageError(`Cannot create file '${name}': ${messageOf(error)}`);
  }
}

function lookUp(name: string): Stats | undefined {
  try {
    return statSync(name, { throwIfNoEntry: false });
  } catch (error) {
    throw wrapError(error, `Cannot access file '${name}'`, { exitCode: 2, showUsage: true });
  }
}
