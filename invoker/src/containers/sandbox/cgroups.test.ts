// Control groups of version 2 of the machine's kernel. If the machine has its controllers in version 1, the groups have no
// limits.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { version2Groups } from './cgroups.js';
import type { Cgroups } from './cgroups.js';

const withinMs = 30_000;

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const last = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > last) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await sleep(20);
  }
}

/** A new group, or undefined if version 2 is not mounted or not writable. */
function newFolder(): string | undefined {
  const mount = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , type]) => type === 'cgroup2')?.[1];
  if (mount === undefined) return undefined;
  const folder = join(mount, `gpuwhisk-test-${process.pid}-${Math.random().toString(36).slice(2)}`);
  try {
    mkdirSync(folder);
    return folder;
  } catch {
    return undefined; // Not writable for this user.
  }
}

const hasVersion2 = ((): boolean => {
  const folder = process.platform === 'linux' ? newFolder() : undefined;
  if (folder !== undefined) rmdirSync(folder);
  return folder !== undefined;
})();
if (!hasVersion2) console.info('No control groups of version 2 may be made here: they are not tested.');

(hasVersion2 ? describe : describe.skip)('groups of version 2 in the kernel', () => {
  let folder: string;
  let groups: Cgroups;
  let busy: ChildProcess;
  beforeEach(async () => {
    folder = newFolder()!;
    groups = await version2Groups(folder, [], systemClock);
    const [, group = ''] = groups.makeWords('one');
    mkdirSync(group);
    busy = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
    writeFileSync(join(group, 'cgroup.procs'), String(busy.pid));
  });
  afterEach(async () => {
    busy.kill('SIGKILL');
    // The folder of the groups is removed only once it is empty.
    await groups.remove('one');
    await groups.close();
    expect(existsSync(folder)).toBe(false);
  });

  const ticks = (): number => {
    const fields = readFileSync(`/proc/${busy.pid}/stat`, 'utf8').split(' ');
    return Number(fields[13]) + Number(fields[14]);
  };

  test('a frozen one does not run until it is thawed', async () => {
    await until('it runs', () => ticks() > 5);
    expect(await groups.freeze('one', true)).toBe(true);
    const frozen = ticks();
    await sleep(200);
    expect(ticks()).toBe(frozen);
    expect(await groups.freeze('one', false)).toBe(true);
    await until('it runs again', () => ticks() > frozen);
    expect(await groups.freeze('another', true)).toBe(false);
  });

  test('its processor time is told', async () => {
    await until('it has run', async () => ((await groups.processorMs('one')) ?? 0) > 20);
    expect(await groups.processorMs('another')).toBeUndefined();
  });

  test('a frozen one is removed with what is in it', async () => {
    await groups.freeze('one', true);
    expect(await groups.list()).toEqual(['one']);
    const ended = new Promise((resolve) => busy.once('exit', (_, signal) => resolve(signal)));
    await groups.remove('one');
    expect(await ended).toBe('SIGKILL');
    expect(await groups.list()).toEqual([]);
    await groups.remove('one');
  });
});

describe('limits of version 2', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-cgroup-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const limits = { memoryBytes: 1000, pids: 8, givesWay: false };

  test('are set before the sandbox is in it, as far as the group has controllers and files', async () => {
    const group = join(folder, 'one');
    writeFileSync(join(folder, 'memory.swap.max'), '');
    const all = await version2Groups(folder, ['memory', 'pids'], systemClock);
    expect([all.limitsMemory, all.limitsPids]).toEqual([true, true]);
    const words = all.limitWords('one', limits).join(' ');
    expect(words).toContain(`write ${group}/memory.max 1000`);
    expect(words).toContain(`oom-count ${group}/memory.events`);
    expect(words).toContain(`write ${group}/memory.swap.max 0`);
    expect(words).not.toContain('memory.oom.group');
    expect(words).toContain(`write ${group}/pids.max 9`);
    const none = await version2Groups(folder, [], systemClock);
    expect([none.limitsMemory, none.limitsPids]).toEqual([false, false]);
    expect(none.limitWords('one', { ...limits, givesWay: true })).toEqual([]);
    expect(none.makeWords('one')).toEqual(['make-dir', group, 'join-dir', group]);
  });

  test('one that gives way has an eighth of the weight that others have, until it no longer does', async () => {
    const group = join(folder, 'one');
    const groups = await version2Groups(folder, ['memory', 'pids', 'cpu'], systemClock);
    expect(groups.limitWords('one', limits).join(' ')).not.toContain('cpu.weight');
    expect(groups.limitWords('one', { ...limits, givesWay: true }).join(' ')).toContain(`write ${group}/cpu.weight 13`);
    mkdirSync(group);
    const weight = (): string => readFileSync(join(group, 'cpu.weight'), 'utf8');
    await groups.giveWay('one', false);
    expect(weight()).toBe('100');
    await groups.giveWay('one', true);
    expect(weight()).toBe('13');
    await groups.giveWay('another', true); // A missing group is no error.
  });
});
