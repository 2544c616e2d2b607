import { mkdir, readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { noCgroups, read, tryWrite, version1Groups, version2Groups } from './cgroups.js';
import type { Cgroups, Hierarchy } from './cgroups.js';

interface Mount {
  point: string;
  type: string;
  options: string[];
}

async function cgroupMounts(): Promise<Mount[]> {
  const lines = (await read('/proc/self/mounts')).split('\n').map((line) => line.split(' '));
  return lines
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .map(([, point = '', type = '', options = '']) => ({ point, type, options: options.split(',') }));
}

async function detectVersion2(root: string, name: string, clock: Clock): Promise<Cgroups | undefined> {
  const own = (await read('/proc/self/cgroup')).match(/^0::(\/.*)$/m)?.[1] ?? '/';
  for (const base of new Set([root, join(root, own)])) {
    const offered = new Set((await read(join(base, 'cgroup.controllers'))).trim().split(/\s+/));
    const wanted = ['memory', 'pids', 'cpu'].filter((controller) => offered.has(controller));
    if (!wanted.includes('memory') || !(await enable(base, wanted))) continue;
    const folder = join(base, name);
    const made = await mkdir(folder, { recursive: true }).then(
      () => true,
      () => false,
    );
    if (!made || !(await enable(folder, wanted))) continue;
    // Together the sandboxes may use the processors as one program with that many threads.
    await tryWrite(join(folder, 'cpu.weight'), String(100 * availableParallelism()));
    return version2Groups(folder, wanted, clock);
  }
  return undefined;
}

/** Lets children of the group have the controllers. A group with processes may not, so ours goes to a leaf then. */
async function enable(folder: string, controllers: readonly string[]): Promise<boolean> {
  const control = join(folder, 'cgroup.subtree_control');
  const enabled = new Set((await read(control)).trim().split(/\s+/));
  const missing = controllers.filter((controller) => !enabled.has(controller));
  if (missing.length === 0) return true;
  const text = missing.map((controller) => `+${controller}`).join(' ');
  if (await tryWrite(control, text)) return true;
  const listed = (await read(join(folder, 'cgroup.procs'))).trim();
  if (listed !== String(process.pid)) return false;
  const leaf = join(folder, 'gpuwhisk-server');
  await mkdir(leaf, { recursive: true });
  if (!(await tryWrite(join(leaf, 'cgroup.procs'), listed)) || !(await tryWrite(control, text))) return false;
  // The platform goes before its functions.
  await tryWrite(join(leaf, 'cpu.weight'), '1000');
  return true;
}

async function detectVersion1(mounts: readonly Mount[], name: string, clock: Clock): Promise<Cgroups | undefined> {
  const hierarchies = new Map<string, Hierarchy>();
  for (const controller of ['memory', 'pids', 'cpu']) {
    const mount = mounts.find((each) => each.type === 'cgroup' && each.options.includes(controller));
    if (!mount) continue;
    const folder = join(mount.point, name);
    try {
      await mkdir(folder, { recursive: true });
      hierarchies.set(controller, { folder, files: new Set(await readdir(folder)) });
    } catch {
      continue; // Not ours to write: the same as not having it; the notes say so.
    }
    if (controller === 'cpu') await tryWrite(join(folder, 'cpu.shares'), String(1024 * availableParallelism()));
  }
  return hierarchies.has('memory') ? version1Groups(hierarchies, clock) : undefined;
}

/** The control groups that this host lets us have (version 2 where its memory controller is there, else version 1). */
export async function detectCgroups(name: string, clock: Clock): Promise<Cgroups> {
  if (process.platform !== 'linux') return noCgroups;
  const mounts = await cgroupMounts();
  const unified = mounts.find((mount) => mount.type === 'cgroup2');
  const modern = unified && (await detectVersion2(unified.point, name, clock));
  return modern ?? (await detectVersion1(mounts, name, clock)) ?? noCgroups;
}
