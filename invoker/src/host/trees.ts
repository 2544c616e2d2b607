// Removal, size and owner of whole folders, whose content other users may write: the only place that walks such folders.
// The addon walks by descriptors and never through a symbolic link, which a running process may put there at any time.
import { existsSync } from 'node:fs';
import { lstat, opendir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { builtPath, launcherPath } from './native-programs.js';

/** Tasks of the addon; each resolves with an errno (0: done), and the bytes and files that were seen. */
interface TreeAddon {
  remove(path: string): Promise<[number, number, number]>;
  measure(path: string, mostFiles: number): Promise<[number, number, number]>;
  own(path: string, user: number): Promise<[number, number, number]>;
}

/** Content of a folder. */
export interface TreeSize {
  /** Bytes on the disk. */
  bytes: number;
  /** Files and folders. */
  files: number;
}

const addonPath = builtPath('tree.node');
let addon: TreeAddon | undefined;

/**
 * The addon. Undefined on a host without a sandbox launcher, where functions have the platform's own user and rights. Throws
 * if only the addon is missing.
 */
function loaded(): TreeAddon | undefined {
  if (addon === undefined && (existsSync(addonPath) || existsSync(launcherPath))) {
    addon = createRequire(import.meta.url)(addonPath) as TreeAddon;
  }
  return addon;
}

function check(task: string, path: string, errno: number): void {
  if (errno === 0) return;
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, 'unknown error'];
  throw Object.assign(new Error(`${code}: ${text}, ${task} '${path}'`), { code, path });
}

/** Removes a folder with all below it, or a file, if it is there. Rejects with an error that has a `code`. */
export async function removeTree(path: string): Promise<void> {
  const native = loaded();
  if (native === undefined) return rm(path, { recursive: true, force: true });
  const [errno] = await native.remove(resolve(path));
  check('remove', path, errno);
}

/**
 * The content of a folder. Counting stops above `mostFiles`. Rejects with an error that has a `code`: ELOOP if folders nest
 * deeper than 128.
 */
export async function measureTree(folder: string, mostFiles: number): Promise<TreeSize> {
  const native = loaded();
  if (native === undefined) return measureHere(folder, mostFiles);
  const [errno, bytes, files] = await native.measure(resolve(folder), mostFiles);
  check('measure', folder, errno);
  return { bytes, files };
}

/** Gives a folder and all below it to a user and the group of its number; root only. Rejects as measureTree does. */
export async function ownTree(folder: string, user: number): Promise<void> {
  const native = loaded();
  if (native === undefined) throw new Error(`The owner of '${folder}' cannot be changed: tree.node is not built.`);
  const [errno] = await native.own(resolve(folder), user);
  check('chown', folder, errno);
}

async function measureHere(folder: string, mostFiles: number): Promise<TreeSize> {
  const size = { bytes: 0, files: 0 };
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined && size.files <= mostFiles; at = folders.pop()) {
    for await (const entry of await opendir(at)) {
      const path = join(at, entry.name);
      size.files += 1;
      size.bytes += ((await lstat(path).catch(ignoreGone))?.blocks ?? 0) * 512;
      if (entry.isDirectory()) folders.push(path);
      if (size.files > mostFiles) break;
    }
  }
  return size;
}

/** Ignores entries that are moved or removed during the count. */
function ignoreGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
