import { readdir, readFile } from 'node:fs/promises';

/** Processes that are looked at, at most. */
const maxProcesses = 64;

/**
 * Memory of a process and its descendants, shared pages divided between their users (PSS), MiB. Undefined if the kernel does
 * not tell, for example since the process has ended.
 */
export async function memoryOfTree(pid: number): Promise<number | undefined> {
  const all = [pid];
  let sumKiB = 0;
  try {
    for (let at = 0; at < all.length && all.length <= maxProcesses; at++) {
      const folder = `/proc/${all[at]}`;
      const found = /^Pss: +(\d+) kB$/m.exec(await readFile(`${folder}/smaps_rollup`, 'utf8'))?.[1];
      if (found === undefined) return undefined;
      sumKiB += Number(found);
      for (const thread of await readdir(`${folder}/task`)) {
        const children = await readFile(`${folder}/task/${thread}/children`, 'utf8');
        all.push(...children.split(' ').filter(Boolean).map(Number));
      }
    }
    return sumKiB / 1024;
  } catch {
    return undefined; // A process has ended meanwhile, or this kernel lacks a file.
  }
}
