import { readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Words } from './launcher-spec.js';
import { processorMsOf } from './processor-time.js';

const freezeWaitMs = 2000;
const emptyWaitMs = 2000;
const pollMs = 5;
/** What a sandbox that gives way has of others' share of the processors. */
const wayPart = 1 / 8;

/** Limits of one sandbox. */
export interface GroupLimits {
  memoryBytes: number;
  pids: number;
  /** Whether the sandbox begins as one that gives way. */
  givesWay: boolean;
}

/** The control groups of one platform: a group of its own, and one in it for each sandbox. */
export interface Cgroups {
  readonly limitsMemory: boolean;
  readonly limitsPids: boolean;
  /** For the launcher's first message: makes the sandbox's groups. */
  makeWords(id: string): Words;
  /** For its second message: sets the limits. */
  limitWords(id: string, limits: GroupLimits): Words;
  /** Freezes or thaws a sandbox; false where that is not to be had. */
  freeze(id: string, frozen: boolean): Promise<boolean>;
  /** Whether a sandbox's share of the processors is a small part of what others have; no effect without the controller. */
  giveWay(id: string, gives: boolean): Promise<void>;
  /** Processor time of the processes in a sandbox's group, and of those they have waited for, ms; undefined without one. */
  processorMs(id: string): Promise<number | undefined>;
  /** Removes a sandbox's groups, killing what is in them. */
  remove(id: string): Promise<void>;
  /** Identifiers of the sandboxes that have groups. */
  list(): Promise<string[]>;
  /** Removes the platform's own group. */
  close(): Promise<void>;
}

/** A hierarchy of control groups. */
export interface Hierarchy {
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
  remove: () => Promise.resolve(),
  list: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};

/** The file's text; none where it is not there. */
export async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return ''; // A file of a group that has gone, or that this kernel does not have.
  }
}

/** Whether the text could be written. */
export async function tryWrite(path: string, text: string): Promise<boolean> {
  return writeFile(path, text).then(
    () => true,
    () => false,
  );
}

/** Kills what is in the group and removes it; false if that did not work in time. */
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
    await tryWrite(join(folder, 'pids.max'), '0'); // Or what is killed may be fewer than what is forked meanwhile.
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

/** Groups of version 1, a hierarchy for each controller. */
export function version1Groups(hierarchies: Map<string, Hierarchy>, clock: Clock): Cgroups {
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
        // Memory and swap together: none of it may be swap.
        if (memory.files.has('memory.memsw.limit_in_bytes')) {
          words.push('write', join(folder, 'memory.memsw.limit_in_bytes'), bytes);
        }
        words.push('oom-count', join(folder, 'memory.oom_control'), 'oom-event', folder);
      }
      // The launcher and the sandbox's init count too.
      if (pids) words.push('write', join(pids.folder, id, 'pids.max'), String(limits.pids + 2));
      if (cpu && limits.givesWay) words.push('write', sharesFile(id), String(1024 * wayPart));
      return words;
    },
    // Joining a fourth hierarchy would cost each start a grace period, and a frozen process of version 1 cannot
    // even be killed: signals do.
    freeze: () => Promise.resolve(false),
    async giveWay(id, gives) {
      if (cpu) await tryWrite(sharesFile(id), String(1024 * (gives ? wayPart : 1)));
    },
    // The same would be true of `cpuacct`.
    processorMs: async (id) => processorMsOf(await listed(join(all[0]?.folder ?? '', id))),
  };
}

/** Groups of version 2 below `folder`, whose children have `controllers`. Rejects where it is not there. */
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
    makeWords: (id) => ['make-dir', groupOf(id)],
    limitWords(id, limits) {
      const words: Words = ['join-dir', groupOf(id)];
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
