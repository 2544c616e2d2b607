import { access, chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, stat, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Names of folders that are being filled start with this. */
export const partialPrefix = '.partial-';

/** Longer than any installation may take, so that one under way in another process is left alone; ms. */
const abandonedMs = 1_800_000;

/**
 * Has a folder filled that is not there, under another name until it is whole. Gives whether this call did so: another process
 * may have been first. Rejects as `fill` does; nothing of it stays then.
 */
export async function fillFolder(folder: string, fill: (partial: string) => Promise<void>): Promise<boolean> {
  if (await isThere(folder)) return false;
  await mkdir(dirname(folder), { recursive: true });
  // As sandboxes see it: without links.
  const partial = await mkdtemp(join(await realpath(dirname(folder)), partialPrefix));
  try {
    await fill(partial);
    await chmod(partial, 0o755);
    await rename(partial, folder);
    return true;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
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
      () => clock.now(), // Finished in this moment.
    );
    if (clock.now() - changedMs > abandonedMs) await rm(folder, { recursive: true, force: true });
  }
}

const processes = '/proc';
/** What a process was started with, and what it sees mounted. */
const tellingFiles = ['cmdline', 'mountinfo'];

/** Which of these names of files a process of this machine was given; undefined where processes cannot be seen. */
export async function namedByProcesses(names: readonly string[]): Promise<Set<string> | undefined> {
  const pids = await namesIn(processes);
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

/** The names in a folder; undefined if there is no such folder. */
async function namesIn(folder: string): Promise<string[] | undefined> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
