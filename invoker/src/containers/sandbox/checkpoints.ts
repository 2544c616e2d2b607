// Checkpoint folders of training jobs. Each is a file system of its own in an image whose space on the disk is allocated
// before the job's first run, so that a job can use no more of the disk, and none that others need:
//
//   checkpoints/JOB/image   the image
//   checkpoints/JOB/files   where it is mounted, which the job's sandbox sees
//   checkpoints/JOB/attempt the number of the last run that began here
import { mkdir, open, readdir, readFile, rename, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bounded } from '@gpuwhisk/common/concurrency';
import { findTool, runTool } from '../../host/programs.js';
import { isThere } from '../../host/partial-folders.js';
import { removeTree } from '../../host/trees.js';
import { ProvisioningError } from '../container-factory.js';
import { reserveBytes } from './sandbox-job.js';

const MiB = 1024 * 1024;
/** Most files and folders of a job's checkpoints, and the number for each MiB of small ones. */
const [maxFiles, filesPerMiB] = [100_000, 256];
const journalMiB = 8;
/** Space of an image beyond its files, besides a sixteenth of them: journal, tables of inodes, superblocks. */
const overheadMiB = 24;
/** The images leave at least one part of so many of the disk. */
const leftPart = 10;

/** One image is made at a time: two that look for space at once would both find what is free. */
const inTurn = bounded(1, 100);

const filesOf = (folder: string): string => join(folder, 'files');

/** The size of a job's checkpoints, MiB, and the bound that they exceed; `problem` is undefined if none. */
export async function checkCheckpoints(folder: string, maxMiB: number): Promise<{ usedMiB: number; problem?: string }> {
  const files = filesOf(folder);
  if (!(await isMounted(files))) return { usedMiB: 0, problem: 'its checkpoint folder is mounted no more' };
  const { blocks, bfree, bsize, ffree } = await statfs(files);
  const bytes = (blocks - bfree) * bsize;
  const usedMiB = Math.ceil(bytes / MiB);
  if (bytes > maxMiB * MiB) {
    return { usedMiB, problem: `its checkpoints take ${usedMiB} MiB, more than its bound of ${maxMiB} MiB` };
  }
  if (ffree === 0) return { usedMiB, problem: 'its checkpoints are more files than its bound allows' };
  return { usedMiB };
}

/**
 * Mounts a job's checkpoints, which are made at its first run and belong to `user`. Resolves with the folder for the sandbox.
 * Rejects with ProvisioningError, which tells the job's owner the reason.
 */
export async function openCheckpoints(folder: string, maxMiB: number, user: number): Promise<string> {
  const files = filesOf(folder);
  try {
    await mkdir(files, { recursive: true, mode: 0o700 });
    const isNew = await inTurn(() => makeImage(folder, maxMiB, user));
    if (await isMounted(files)) return files;
    await call('mount', '-t', 'ext4', '-o', 'loop,nosuid,nodev', join(folder, 'image'), files);
    // Made by mkfs, and of no use to the job.
    if (isNew) await rmdir(join(files, 'lost+found'));
    return files;
  } catch (error) {
    throw refused((error as Error).message);
  }
}

/**
 * Notes durably that attempt `attempt` of a job begins to use its checkpoints. Rejects with ProvisioningError if a later one
 * has begun: the attempt was thought lost, and must not write what the later one has.
 */
export async function adoptCheckpoints(folder: string, attempt: number): Promise<void> {
  const path = join(folder, 'attempt');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '0';
  });
  // A damaged note is no permission.
  if (!/^\d+$/.test(text)) throw refused(`'${path}' does not hold the number of a run`);
  const last = Number(text);
  if (attempt < last) throw refused(`run ${last} has begun, and this is run ${attempt}`);
  if (attempt === last) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(String(attempt));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

/** A job with checkpoints is refused for this reason. */
export function refused(reason: string): ProvisioningError {
  const text = `The checkpoints of the training job cannot be kept: ${reason.split('\n')[0] ?? ''}.`;
  return new ProvisioningError(text, text, true);
}

/** Makes a job's image if there is none; whether it did. */
async function makeImage(folder: string, maxMiB: number, user: number): Promise<boolean> {
  const [image, partial] = [join(folder, 'image'), join(folder, 'partial')];
  if (await isThere(image)) return false;
  const sizeMiB = maxMiB + Math.ceil(maxMiB / 16) + overheadMiB;
  const { bavail, blocks, bsize } = await statfs(folder);
  // The rest is for what is not a job's: installations and builds of other namespaces, records.
  const leftBytes = Math.max(reserveBytes, (blocks * bsize) / leftPart);
  if (bavail * bsize - sizeMiB * MiB < leftBytes) {
    const leftMiB = Math.ceil(leftBytes / MiB);
    throw new Error(`the disk would have less than ${leftMiB} MiB left beside ${sizeMiB} MiB for them`);
  }
  await removeTree(partial);
  await call('fallocate', '-l', `${sizeMiB}MiB`, partial);
  const inodes = Math.min(maxFiles, maxMiB * filesPerMiB + filesPerMiB);
  // nodiscard: a discarded part of the image would be a hole, which another may fill.
  const extended = `nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner=${user}:${user}`;
  const sizes = ['-m', '0', '-b', '4096', '-N', String(inodes), '-J', `size=${journalMiB}`, '-O', '^resize_inode'];
  await call('mkfs.ext4', '-q', '-F', ...sizes, '-E', extended, partial);
  await rename(partial, image);
  return true;
}

/** Removes a job's checkpoints, if there are any. */
export async function removeCheckpoints(folder: string): Promise<void> {
  await unmount(folder);
  await removeTree(folder);
}

/** Unmounts the checkpoints of all jobs below `all`, which keeps them: when no job runs. */
export async function closeCheckpoints(all: string): Promise<void> {
  const jobs = await readdir(all).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return [];
  });
  for (const job of jobs) await unmount(join(all, job));
}

async function unmount(folder: string): Promise<void> {
  // Until a process that still has it open ends, the kernel keeps it, out of sight.
  if (await isMounted(filesOf(folder))) await call('umount', '-l', filesOf(folder));
}

/** Whether a file system is mounted at this folder. */
async function isMounted(folder: string): Promise<boolean> {
  try {
    return (await stat(folder)).dev !== (await stat(dirname(folder))).dev;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function call(name: string, ...args: string[]): Promise<void> {
  const tool = await findTool(name);
  if (tool === undefined) throw new Error(`${name} is not installed`);
  await runTool(tool, args);
}
