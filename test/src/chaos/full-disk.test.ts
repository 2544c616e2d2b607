// A platform on embedded engines, and an invoker's start marks, on a full disk.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalStartJournal } from '@gpuwhisk/common/bus/durable';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { lockDataFolder } from '@gpuwhisk/server/process/data-lock';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { canMount, canMountExt4, mountSmall, mountSmallExt4, unmountSmall } from '../support/small-disk.js';

const waitMs = 60_000;
const testMs = 120_000;
/** Takes all free space of the file system at `folder`; the function returned frees it. */
function fill(folder: string): () => void {
  const file = join(folder, 'filler');
  const descriptor = openSync(file, 'w');
  const block = Buffer.alloc(4096);
  try {
    while (statfsSync(folder).bavail > 0) writeSync(descriptor, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
  return () => rmSync(file);
}

(canMount ? describe : describe.skip)('a full disk', () => {
  const mounted: string[] = [];
  const mount = (folder: string, sizeMiB: number): string => {
    expect(mountSmall(folder, sizeMiB)).toBe(true);
    mounted.push(folder);
    return folder;
  };
  const unmountAll = (): void => {
    for (const folder of mounted.splice(0)) unmountSmall(folder);
  };

  describe('under a platform', () => {
    let dataDir: string;
    let platform: RunningPlatform;

    const start = async (): Promise<void> => {
      const flags = ['--stem-cells', 'false', '--containers', 'process', '--gateway-port', 'off', '--gpus', 'none'];
      platform = await startPlatform({ dataDir, flags: [...flags, '--set', 'blockingWaitMs=2000'] });
    };

    beforeEach(() => {
      dataDir = newDataDir();
    });

    afterEach(async () => {
      await platform.end('SIGKILL');
      unmountAll();
      removeDataDir(dataDir);
    }, testMs);

    const code = 'function main({ n, text = "" }) { return { n, text }; }';
    const text = 'x'.repeat(20_000);

    (canMountExt4 ? test : test.skip)(
      'of the store, by entities and records at once: nothing more is accepted until there is room, nothing accepted is lost',
      async () => {
        const folder = join(dataDir, 'store');
        expect(mountSmallExt4(folder, join(dataDir, 'image'), 96)).toBe(true);
        mounted.push(folder);
        await start();
        await platform.api.putAction('echo', code);
        const giveBack = fill(folder);
        const put = (name: string, body: string) =>
          platform.api.request('PUT', `_/actions/${name}`, { exec: { kind: 'nodejs:default', code: body } });
        const accepted: string[] = [];
        const invoke = async (): Promise<number> => {
          const { status, body } = await platform.api.request('POST', '_/actions/echo', { n: accepted.length, text });
          if (status === 202) accepted.push(body.activationId as string);
          else expect([429, 507]).toContain(status);
          return status;
        };
        const entities: string[] = [];
        const write = async (): Promise<number> => {
          const name = `large${entities.length}`;
          const { status, body } = await put(name, `${code}//${'x'.repeat(600_000)}`);
          if (status === 200) entities.push(name);
          else expect([status, body.error]).toEqual([507, expect.stringContaining('The disk of the platform is full')]);
          return status;
        };
        const untilFull = async (act: () => Promise<number>): Promise<void> => {
          while ((await act()) !== 507);
        };
        await Promise.all([untilFull(write), untilFull(invoke), untilFull(invoke)]);
        expect(entities.length).toBeGreaterThan(0);
        expect(accepted.length).toBeGreaterThan(0);
        // What is stored can be read and removed.
        expect((await platform.api.request('GET', '_/actions/echo')).status).toBe(200);
        expect((await platform.api.request('DELETE', `_/actions/${entities.pop() ?? ''}`)).status).toBe(200);
        for (const id of accepted) await platform.api.record(id, waitMs);
        // A start on the full disk has the space that was allocated before.
        await platform.end('SIGKILL');
        await start();
        expect(await invoke()).toBe(507);
        for (const name of entities) expect((await platform.api.request('GET', `_/actions/${name}`)).status).toBe(200);
        giveBack();
        await until('it is accepted again', async () => (await invoke()) === 202, waitMs);
        for (const id of accepted) await platform.api.record(id, waitMs);
      },
      testMs,
    );

    (canMountExt4 ? test : test.skip)(
      'of the store, in a new folder, whose disk has less than the store allocates ahead: it serves',
      async () => {
        const folder = join(dataDir, 'store');
        expect(mountSmallExt4(folder, join(dataDir, 'image'), 48)).toBe(true);
        mounted.push(folder);
        await start();
        await platform.api.putAction('echo', code);
        expect((await platform.api.request('POST', '_/actions/echo', { n: 1 })).status).toBe(202);
      },
      testMs,
    );

    (canMountExt4 ? test : test.skip)(
      'of the store, where no space can be allocated ahead: the start says so, and free space of the disk counts',
      async () => {
        const folder = join(dataDir, 'store');
        expect(mountSmallExt4(folder, join(dataDir, 'image'), 96, false)).toBe(true);
        mounted.push(folder);
        await start();
        expect(platform.output()).toMatch(
          /space for \S+data\.mdb cannot be allocated ahead \(its file system answers error 95\)/,
        );
        const put = () =>
          platform.api.request('PUT', '_/actions/echo?overwrite=true', { exec: { kind: 'nodejs:default', code } });
        expect((await put()).status).toBe(200);
        const giveBack = fill(folder);
        expect((await put()).status).toBe(507);
        giveBack();
        await until('it is accepted again', async () => (await put()).status === 200, waitMs);
      },
      testMs,
    );

    test(
      'of the log: nothing more is accepted until there is room, and what was accepted is recorded',
      async () => {
        const folder = mount(join(dataDir, 'log'), 16);
        await start();
        await platform.api.putAction('echo', code);
        const giveBack = fill(folder);
        const accepted: string[] = [];
        await until(
          'it is refused',
          async () => {
            const { status, body } = await platform.api.request('POST', '_/actions/echo', { n: accepted.length, text });
            if (status === 202) accepted.push(body.activationId as string);
            return status === 503;
          },
          waitMs,
        );
        giveBack();
        const invoked = async () => (await platform.api.invoke('echo', { n: 1 })).status === 200;
        await until('it is accepted again', invoked, 2 * waitMs);
        for (const id of accepted) await platform.api.record(id, waitMs);
        const later = await platform.api.submit('echo', { n: 2 });
        // Activations accepted after the failure are on the disk, too.
        await platform.end('SIGKILL');
        await start();
        for (const id of [...accepted, later]) await platform.api.record(id, waitMs);
      },
      testMs,
    );
  });

  test('of the data folder: a start tells to free space, and succeeds once there is some', () => {
    const folder = newDataDir();
    try {
      mount(folder, 1);
      chmodSync(folder, 0o700);
      const giveBack = fill(folder);
      const told = `The disk of the data folder ${folder} is full: free 100 MB there, and start again.`;
      expect(() => lockDataFolder(folder)).toThrow(told);
      giveBack();
      lockDataFolder(folder)();
    } finally {
      unmountAll();
      removeDataDir(folder);
    }
  });

  test('of start marks: a run that cannot be marked is told so until there is room, and marks that were synced are there afterwards', async () => {
    const folder = mount(mkdtempSync(join(tmpdir(), 'gpuwhisk-marks-')), 4);
    const options = { disk: systemDisk, folder: join(folder, 'marks'), clock: systemClock, random: systemRandom };
    const open = (): Promise<LocalStartJournal> => LocalStartJournal.open({ ...options, keepMs: 3_600_000 });
    try {
      const marks = await open();
      await marks.mark('before')();
      const giveBack = fill(folder);
      const synced = ['before'];
      let refused: unknown;
      for (let n = 0; refused === undefined && n < 10_000; n++) {
        try {
          await marks.mark(`m${n}`)();
          synced.push(`m${n}`);
        } catch (error) {
          refused = error;
        }
      }
      expect(String(refused)).toMatch(/ENOSPC|no space/i);
      giveBack();
      const marked = async (): Promise<boolean> => {
        const wait = await Promise.resolve()
          .then(() => marks.mark('later')())
          .catch((error: unknown) => error);
        return wait === undefined;
      };
      await until('marks are taken again', marked);
      synced.push('later');
      await marks.close();
      const next = await open();
      expect(synced.filter((id) => !next.startedBefore(id))).toEqual([]);
      await next.mark('after')();
      await next.close();
    } finally {
      unmountAll();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
