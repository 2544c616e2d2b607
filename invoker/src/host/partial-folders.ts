import { access, chmod, mkdir, mkdtemp, readdir, realpath, rename, stat, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { removeTree } from './trees.js';

/** Prefix of the names of folders that are being filled. */
export const partialPrefix = '.partial-';

/** Age of an abandoned folder, ms: longer than any installation, which may be under way in another process. */
const abandonedMs = 1_800_000;

/**
 * Fills a missing folder, under another name until it is complete. Resolves with false if the folder exists or another
 * process was first. Rejects as `fill` does and removes the partial folder then.
 */
export async function fillFolder(folder: string, fill: (partial: string) => Promise<void>): Promise<boolean> {
  if (await isThere(folder)) return false;
  await mkdir(dirname(folder), { recursive: true });
  // The real path, as sandboxes see the folder without links.
  const partial = await mkdtemp(join(await realpath(dirname(folder)), partialPrefix));
  try {
    await fill(partial);
    await chmod(partial, 0o755);
    await rename(partial, folder);
    return true;
  } catch (error) {
    await removeTree(partial);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    return false;
  }
}

/** Whether there is a file or folder at this path. */
export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Removes the folders below `root` that processes were filling when they ended. */
export async function removeAbandoned(root: string, clock: Clock): Promise<void> {
  const partial = ((await namesIn(root)) ?? []).filter((name) => name.startsWith(partialPrefix));
  for (const name of partial) {
    const folder = join(root, name);
    const changedMs = await stat(folder).then(
      (found) => found.mtimeMs,
      () => clock.now(), // The folder has just been completed.
    );
    if (clock.now() - changedMs > abandonedMs) await removeTree(folder);
  }
}

const processes = '/proc';
/** Files of a process that may contain names: its command line and its mounts. */
const tellingFiles = ['cmdline', 'mountinfo'];

/** The names that occur in a command line or mount of a process of this machine; undefined if processes are not visible. */
export async function namedByProcesses(names: readonly string[]): Promise<Set<string> | undefined> {
  const pids = await namesIn(processes);
  if (pids === undefined) return undefined;
  const named = new Set<string>();
  for (const pid of pids) {
    for (const file of /^\d+$/.test(pid) ? tellingFiles : []) {
      // The process may have ended.
      const text = await readFile(join(processes, pid, file), 'utf8').catch(() => '');
      for (const name of names) if (text.includes(name)) named.add(name);
    }
  }
  return named;
}

/** The names in a folder; undefined if there is no such folder. */
async function namesIn(folder: string): Promise<string[] | undefined> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
