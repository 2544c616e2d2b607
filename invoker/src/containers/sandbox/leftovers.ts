import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Cgroups } from './cgroups.js';
import { holdFlag } from './holder.js';
import { findTool, runTool } from '../../host/run-program.js';

const killWaitMs = 3000;
const pollMs = 10;

/** Processes of launchers and holders that were started with `tag`: their sandboxes end with them. */
async function launchersOf(tag: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const words = (await readFile(join('/proc', name, 'cmdline'), 'utf8').catch(() => '')).split('\0');
    if (words[1] === tag && (words.length === 3 || words[2] === holdFlag)) found.push(Number(name));
  }
  return found;
}

/** Removes a folder of a sandbox. What a function made in it may be too deep for Node; then `rm` does it. */
export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    const tool = await findTool('rm');
    if (tool === undefined) throw error;
    await runTool(tool, ['-rf', '--', path]);
  }
}

/**
 * Kills and removes what an earlier life of the same data folder left: launchers (known by `tag`), control groups
 * and folders of sandboxes. Links to the network go with the sandboxes. Returns how many sandboxes there were.
 */
export async function removeLeftovers(options: {
  tag: string;
  cgroups: Cgroups;
  sandboxesFolder: string;
  clock: Clock;
}): Promise<number> {
  const deadlineMs = options.clock.monotonicMs() + killWaitMs;
  let killed = 0;
  for (let pids = await launchersOf(options.tag); pids.length > 0; pids = await launchersOf(options.tag)) {
    if (options.clock.monotonicMs() > deadlineMs) throw new Error(`Processes ${pids.join(', ')} cannot be killed.`);
    killed = Math.max(killed, pids.length);
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    await sleep(options.clock, pollMs);
  }
  const groups = await options.cgroups.list();
  await Promise.all(groups.map((id) => options.cgroups.remove(id)));
  const folders = await readdir(options.sandboxesFolder).catch(() => []);
  await Promise.all(folders.map((name) => removeFolder(join(options.sandboxesFolder, name))));
  return Math.max(killed, groups.length);
}
