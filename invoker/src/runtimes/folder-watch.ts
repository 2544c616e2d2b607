import { lstat, readdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import { JobLimitError } from './sandbox-job.js';
import type { SandboxJob } from './sandbox-job.js';

const MiB = 1024 * 1024;
const checkEveryMs = 200;
/** Of the time, what measuring the folder may take. */
const measuringPart = 1 / 4;
/** What a job leaves free on the disk: more than it writes between two checks. */
const reserveBytes = 1024 * MiB;

/**
 * Watches a job's folder until `over`. Resolves with what the job has exceeded, or with undefined. The disk's free space is
 * looked at every 200 ms, the folder's size less often where it holds many files.
 */
export async function watchFolder(
  { folder, maxBytes, maxFiles, timeoutMs }: Pick<SandboxJob, 'folder' | 'maxBytes' | 'maxFiles' | 'timeoutMs'>,
  clock: Clock,
  over: AbortSignal,
): Promise<JobLimitError | undefined> {
  const beganMs = clock.monotonicMs();
  let measureAtMs = 0;
  const ended = aborted(over);
  for (;;) {
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < reserveBytes) {
      return new JobLimitError(`the platform's disk has less than ${reserveBytes / MiB} MiB left`);
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - beganMs > timeoutMs) return new JobLimitError(`no end within ${timeoutMs} ms`);
    if (nowMs >= measureAtMs) {
      const used = await measure(folder, maxFiles);
      if (used.bytes > maxBytes) return new JobLimitError(`more than ${Math.floor(maxBytes / MiB)} MiB`);
      if (used.files > maxFiles) return new JobLimitError(`more than ${maxFiles} files`);
      measureAtMs = nowMs + (clock.monotonicMs() - nowMs) / measuringPart;
    }
    if (over.aborted) return undefined;
    await Promise.race([sleep(clock, checkEveryMs), ended]);
    if (over.aborted) measureAtMs = 0; // Once more, of all that it has written.
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Bytes on the disk and number of what is below a folder, counted until there are more than `maxFiles`. */
async function measure(folder: string, maxFiles: number): Promise<{ bytes: number; files: number }> {
  const used = { bytes: 0, files: 0 };
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined && used.files <= maxFiles; at = folders.pop()) {
    const entries = await readdir(at, { withFileTypes: true }).catch(ignoreGone);
    for (const entry of entries ?? []) {
      const path = join(at, entry.name);
      used.files += 1;
      if (entry.isDirectory()) folders.push(path);
      else used.bytes += ((await lstat(path).catch(ignoreGone))?.blocks ?? 0) * 512;
    }
  }
  return used;
}

/** What is moved or removed meanwhile counts where it is found. */
function ignoreGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
