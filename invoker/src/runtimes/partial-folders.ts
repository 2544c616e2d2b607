import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Names of folders that are being filled start with this. */
export const partialPrefix = '.partial-';

/** Longer than any installation may take, so that one under way in another process is left alone; ms. */
const abandonedMs = 1_800_000;

/** Removes the folders below `root` that processes were filling when they ended. */
export async function removeAbandoned(root: string, clock: Clock): Promise<void> {
  const partial = (await namesIn(root)).filter((name) => name.startsWith(partialPrefix));
  for (const name of partial) {
    const folder = join(root, name);
    const changedMs = await stat(folder).then(
      (found) => found.mtimeMs,
      () => clock.now(), // Finished in this moment.
    );
    if (clock.now() - changedMs > abandonedMs) await rm(folder, { recursive: true, force: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
