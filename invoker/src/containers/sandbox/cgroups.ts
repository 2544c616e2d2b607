// Control groups of sandboxes, version 1 or 2, and their detection on the host.
import { readFileSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rmdir, writeFile, mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Words } from './launcher.js';

const freezeWaitMs = 2000;
/** Processes that the kernel cannot end at once hold up the end of their container this long, ms. */
const emptyWaitMs = 30_000;
const pollMs = 5;
/** Processor weight of a sandbox that gives way, as a fraction of the usual weight. */
const wayPart = 1 / 8;

/** Limits of one sandbox. */
interface GroupLimits {
  memoryBytes: number;
  pids: number;
  /** Whether the sandbox yields processors to others from its start. */
  givesWay: boolean;
}

/** The control groups of one platform: one group, with a child group for each sandbox. */
export interface Cgroups {
  readonly limitsMemory: boolean;
  readonly limitsPids: boolean;
  /** Words of the launcher's first message, which make the sandbox's groups and put it into them. */
  makeWords(id: string): Words;
  /** Words of the launcher's second message, which set the limits. */
  limitWords(id: string, limits: GroupLimits): Words;
  /** Freezes or thaws a sandbox; false if the host's groups cannot. */
  freeze(id: string, frozen: boolean): Promise<boolean>;
  /** Sets whether a sandbox has a reduced processor weight; no effect without the controller. */
  giveWay(id: string, gives: boolean): Promise<void>;
  /** Processor time of a sandbox's processes and of their reaped children, ms; undefined without a group. */
  processorMs(id: string): Promise<number | undefined>;
  /** The memory that a sandbox holds now, bytes; undefined where its group does not tell. */
  heldBytes(id: string): number | undefined;
  /** Sets another memory limit of a sandbox; whether that succeeded. */
  limitMemory(id: string, bytes: number): boolean;
  /** The most memory that a sandbox has held, bytes; undefined where its group does not tell. */
  peakBytes(id: string): number | undefined;
  /** Kills the processes in a sandbox's groups and removes the groups. */
  remove(id: string): Promise<void>;
  /** Identifiers of the sandboxes that have groups. */
  list(): Promise<string[]>;
  /** Removes the platform's own group. */
  close(): Promise<void>;
}

/** A hierarchy of control groups. */
interface Hierarchy {
  /** The platform's group. */
  folder: string;
  files: Set<string>;
}

/** No control groups. */
export const noCgroups: Cgroups = {
  limitsMemory: false,
  limitsPids: false,
  makeWords: () => [],
  limitWords: () => [],
  freeze: () => Promise.resolve(false),
  giveWay: () => Promise.resolve(),
  processorMs: () => Promise.resolve(undefined),
  heldBytes: () => undefined,
  limitMemory: () => false,
  peakBytes: () => undefined,
  remove: () => Promise.resolve(),
  list: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};

/** The file's text; empty if there is no such file. */
async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return ''; // The group has been removed, or this kernel lacks the file.
  }
}

/** The number in a file of the kernel, which no disk has to be waited for; undefined if there is none. */
function numberIn(path: string): number | undefined {
  try {
    const bytes = Number.parseInt(readFileSync(path, 'utf8'), 10);
    return Number.isNaN(bytes) ? undefined : bytes;
  } catch {
    return undefined; // This kernel lacks the file.
  }
}

/** Writes a text to a file of the kernel at once; whether that succeeded. */
function writeNow(path: string, text: string): boolean {
  try {
    writeFileSync(path, text);
    return true;
  } catch {
    return false; // The group has been removed, or its processes hold more than a new limit.
  }
}

/** Writes a text to a file; whether that succeeded. */
async function tryWrite(path: string, text: string): Promise<boolean> {
  return writeFile(path, text).then(
    () => true,
    () => false,
  );
}

/** Kills the processes in a group and removes it; false if the group could not be removed in time. */
async function removeGroup(folder: string, clock: Clock): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + emptyWaitMs;
  for (;;) {
    try {
      await rmdir(folder);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    }
    if (clock.monotonicMs() > deadlineMs) return false;
    await tryWrite(join(folder, 'cgroup.freeze'), '0');
    await tryWrite(join(folder, 'pids.max'), '0'); // Otherwise processes could fork faster than they are killed.
    if (!(await tryWrite(join(folder, 'cgroup.kill'), '1'))) await killListed(folder);
    await sleep(clock, pollMs);
  }
}

async function listed(folder: string): Promise<number[]> {
  return (await read(join(folder, 'cgroup.procs')))
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0);
}

async function killListed(folder: string): Promise<void> {
  for (const pid of await listed(folder)) {
    if (pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

async function subfolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

function grouped(hierarchies: readonly Hierarchy[], clock: Clock): Pick<Cgroups, 'remove' | 'list' | 'close'> {
  return {
    async remove(id) {
      await Promise.all(hierarchies.map(({ folder }) => removeGroup(join(folder, id), clock)));
    },
    async list() {
      const names = await Promise.all(hierarchies.map(({ folder }) => subfolders(folder)));
      return [...new Set(names.flat())];
    },
    async close() {
      await Promise.all(hierarchies.map(({ folder }) => removeGroup(folder, clock)));
    },
  };
}

/** Groups of version 1, with a hierarchy for each controller. */
function version1Groups(hierarchies: Map<string, Hierarchy>, clock: Clock): Cgroups {
  const all = [...hierarchies.values()];
  const memory = hierarchies.get('memory');
  const pids = hierarchies.get('pids');
  const cpu = hierarchies.get('cpu');
  const sharesFile = (id: string): string => join(cpu?.folder ?? '', id, 'cpu.shares');
  return {
    ...grouped(all, clock),
    limitsMemory: memory !== undefined,
    limitsPids: pids !== undefined,
    makeWords: (id) => all.flatMap(({ folder }) => ['make-dir', join(folder, id), 'join', join(folder, id)]),
    limitWords(id, limits) {
      const words: Words = [];
      if (memory) {
        const folder = join(memory.folder, id);
        const bytes = String(limits.memoryBytes);
        words.push('write', join(folder, 'memory.limit_in_bytes'), bytes);
        // The limit of memory and swap together equals that of memory, so that there is no swap.
        if (memory.files.has('memory.memsw.limit_in_bytes')) {
          words.push('write', join(folder, 'memory.memsw.limit_in_bytes'), bytes);
        }
        words.push('oom-count', join(folder, 'memory.oom_control'), 'oom-event', folder);
      }
      // One more for the sandbox's init.
      if (pids) words.push('write', join(pids.folder, id, 'pids.max'), String(limits.pids + 1));
      if (cpu && limits.givesWay) words.push('write', sharesFile(id), String(1024 * wayPart));
      return words;
    },
    // Sandboxes are paused by signals instead. A fourth hierarchy would cost each start a grace period of the kernel, and
    // version 1 cannot even kill a frozen process.
    freeze: () => Promise.resolve(false),
    async giveWay(id, gives) {
      if (cpu) await tryWrite(sharesFile(id), String(1024 * (gives ? wayPart : 1)));
    },
    // Read from /proc, as `cpuacct` would be a fourth hierarchy, too.
    heldBytes: (id) => memory && numberIn(join(memory.folder, id, 'memory.usage_in_bytes')),
    limitMemory(id, bytes) {
      if (memory === undefined) return false;
      const limits = ['memory.limit_in_bytes'];
      if (memory.files.has('memory.memsw.limit_in_bytes')) limits.push('memory.memsw.limit_in_bytes');
      const files = limits.map((name) => join(memory.folder, id, name));
      // The limit of memory must never exceed that of memory and swap together.
      const rises = bytes > (numberIn(files[0] ?? '') ?? 0);
      return (rises ? files.reverse() : files).every((file) => writeNow(file, String(bytes)));
    },
    peakBytes: (id) => memory && numberIn(join(memory.folder, id, 'memory.max_usage_in_bytes')),
    processorMs: async (id) => processorMsOf(await listed(join(all[0]?.folder ?? '', id))),
  };
}

/** Groups of version 2 below `folder`, whose children have `controllers`. Rejects if the folder does not exist. */
export async function version2Groups(folder: string, controllers: readonly string[], clock: Clock): Promise<Cgroups> {
  return version2({ folder, files: new Set(await readdir(folder)) }, new Set(controllers), clock);
}

function version2(hierarchy: Hierarchy, controllers: ReadonlySet<string>, clock: Clock): Cgroups {
  const groupOf = (id: string): string => join(hierarchy.folder, id);
  const weightFile = (id: string): string => join(groupOf(id), 'cpu.weight');
  return {
    ...grouped([hierarchy], clock),
    limitsMemory: controllers.has('memory'),
    limitsPids: controllers.has('pids'),
    makeWords: (id) => ['make-dir', groupOf(id), 'join-dir', groupOf(id)],
    limitWords(id, limits) {
      const words: Words = [];
      if (controllers.has('memory')) {
        words.push('write', join(groupOf(id), 'memory.max'), String(limits.memoryBytes));
        words.push('oom-count', join(groupOf(id), 'memory.events'));
        for (const [file, value] of [
          ['memory.swap.max', '0'],
          ['memory.oom.group', '1'],
        ] as const) {
          if (hierarchy.files.has(file)) words.push('write', join(groupOf(id), file), value);
        }
      }
      if (controllers.has('pids')) words.push('write', join(groupOf(id), 'pids.max'), String(limits.pids + 1));
      if (controllers.has('cpu') && limits.givesWay)
        words.push('write', weightFile(id), String(Math.round(100 * wayPart)));
      return words;
    },
    async giveWay(id, gives) {
      if (controllers.has('cpu')) await tryWrite(weightFile(id), String(Math.round(100 * (gives ? wayPart : 1))));
    },
    heldBytes: (id) => numberIn(join(groupOf(id), 'memory.current')),
    limitMemory: (id, bytes) => controllers.has('memory') && writeNow(join(groupOf(id), 'memory.max'), String(bytes)),
    peakBytes: (id) => numberIn(join(groupOf(id), 'memory.peak')),
    async processorMs(id) {
      const usedUs = /^usage_usec (\d+)$/m.exec(await read(join(groupOf(id), 'cpu.stat')))?.[1];
      return usedUs === undefined ? undefined : Number(usedUs) / 1000;
    },
    async freeze(id, frozen) {
      const wanted = frozen ? '1' : '0';
      if (!(await tryWrite(join(groupOf(id), 'cgroup.freeze'), wanted))) return false;
      const deadlineMs = clock.monotonicMs() + freezeWaitMs;
      while (clock.monotonicMs() < deadlineMs) {
        const events = await read(join(groupOf(id), 'cgroup.events'));
        if (events === '' || events.includes(`frozen ${wanted}`)) return true;
        await sleep(clock, pollMs);
      }
      return true;
    },
  };
}

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
    // All sandboxes together have the weight of one program with a thread for each processor.
    await tryWrite(join(folder, 'cpu.weight'), String(100 * availableParallelism()));
    return version2Groups(folder, wanted, clock);
  }
  return undefined;
}

/**
 * Enables controllers for children of a group. The kernel refuses this for a group with processes, so the platform's process
 * moves to a leaf.
 */
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
  // The platform has priority over its functions.
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
      continue; // A hierarchy that is not writable counts as missing; the notes report this.
    }
    if (controller === 'cpu') await tryWrite(join(folder, 'cpu.shares'), String(1024 * availableParallelism()));
  }
  return hierarchies.has('memory') ? version1Groups(hierarchies, clock) : undefined;
}

/** The control groups that this host allows: version 2 if it has the memory controller, else version 1. */
export async function detectCgroups(name: string, clock: Clock): Promise<Cgroups> {
  if (process.platform !== 'linux') return noCgroups;
  const mounts = await cgroupMounts();
  const unified = mounts.find((mount) => mount.type === 'cgroup2');
  const modern = unified && (await detectVersion2(unified.point, name, clock));
  return modern ?? (await detectVersion1(mounts, name, clock)) ?? noCgroups;
}

/** `/proc` counts in hundredths of a second, whatever the kernel's own tick. */
const msPerTick = 10;
/** Index of utime among the fields after the name in `/proc/<pid>/stat`; stime, cutime and cstime follow. */
const firstTime = 11;

/** Total processor time of the processes and of their reaped children, ms; undefined if no process lives. */
async function processorMsOf(pids: readonly number[]): Promise<number | undefined> {
  const times = await Promise.all(pids.map(ticksOf));
  const known = times.filter((ticks) => ticks !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, ticks) => sum + ticks, 0) * msPerTick;
}

async function ticksOf(pid: number): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(firstTime, firstTime + 4).reduce((sum, field) => sum + Number(field), 0);
  } catch {
    return undefined; // The process has ended.
  }
}
