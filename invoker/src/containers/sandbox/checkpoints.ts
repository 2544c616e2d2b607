import { statfs } from 'node:fs/promises';
import { measureTree, removeTree } from '../../host/trees.js';
import { reserveBytes } from './sandbox-job.js';

const MiB = 1024 * 1024;
/** Most files and folders of a job's checkpoints. */
const maxFiles = 100_000;

/** The size of a checkpoint folder, MiB, and the bound that it or its disk exceeds; `problem` is undefined if none. */
export async function checkCheckpoints(folder: string, maxMiB: number): Promise<{ usedMiB: number; problem?: string }> {
  const { bytes, files } = await measureTree(folder, maxFiles);
  const { bavail, bsize } = await statfs(folder);
  const usedMiB = Math.ceil(bytes / MiB);
  if (bytes > maxMiB * MiB) {
    return { usedMiB, problem: `its checkpoints take ${usedMiB} MiB, more than its bound of ${maxMiB} MiB` };
  }
  if (files > maxFiles) return { usedMiB, problem: `its checkpoints are more than ${maxFiles} files` };
  if (bavail * bsize >= reserveBytes) return { usedMiB };
  return { usedMiB, problem: `the disk of its checkpoints has less than ${reserveBytes / MiB} MiB left` };
}

/** Removes a checkpoint folder, if it is there. */
export function removeCheckpoints(folder: string): Promise<void> {
  return removeTree(folder);
}
