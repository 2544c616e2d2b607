// A platform on embedded engines, and an invoker's start marks, on a full disk.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalStartJournal } from '@gpuwhisk/common/bus/durable';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { canMount, mountSmall, unmountSmall } from '../support/small-disk.js';

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

    test(
      'of the store: records wait, and are stored once there is room',
      async () => {
        const folder = mount(join(dataDir, 'store'), 16);
        await start();
        const { api } = platform;
        await api.putAction('echo', code);
        await api.invoke('echo', { n: 0 });
        const giveBack = fill(folder);
        const accepted: string[] = [];
        const stored = async (id: string) => (await api.request('GET', `_/activations/${id}`)).status === 200;
        const pending = async (): Promise<number> => {
          const metrics = await (await fetch(`${platform.url}/metrics`)).text();
          return Number(/^gpuwhisk_invoker_records_pending (\d+)/m.exec(metrics)?.[1]);
        };
        await until(
          'the store has no room',
          async () => {
            accepted.push(await api.submit('echo', { n: accepted.length, text }));
            return platform.output().includes('activation records could not be stored');
          },
          waitMs,
        );
        expect(await pending()).toBeGreaterThan(0);
        // Stored entities can still be read, and invocations continue.
        expect((await api.request('GET', '_/actions/echo')).status).toBe(200);
        accepted.push(await api.submit('echo', { n: -1, text }));
        giveBack();
        await until('all are stored', async () => (await Promise.all(accepted.map(stored))).every(Boolean), waitMs);
        expect(await pending()).toBe(0);
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
