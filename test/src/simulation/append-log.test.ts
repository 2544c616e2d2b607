import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AppendLog, LogDamage, LogEntry } from '@gpuwhisk/common/bus/append-log';
import { LogBehindError, LogFailedError } from '@gpuwhisk/common/bus/append-log';
import type { AppendLogOptions } from '@gpuwhisk/common/bus/file-log';
import { openAppendLog } from '@gpuwhisk/common/bus/file-log';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SimulatedClock } from './simulated-clock.js';
import { SimulatedDisk } from './simulated-disk.js';

const folder = '/log';

interface Opened {
  log: AppendLog;
  damage: LogDamage[];
  /** `position stream payload` of each entry read at opening. */
  entries: string[];
}

describe('the append log', () => {
  let clock: SimulatedClock;
  let disk: SimulatedDisk;
  let warnings: Error[];

  beforeEach(() => {
    clock = new SimulatedClock();
    disk = new SimulatedDisk(clock, seededRandom(1));
    warnings = [];
  });

  const describeEntry = ({ position, stream, payload }: LogEntry): string =>
    `${position} ${stream} ${Buffer.from(payload).toString()}`;

  async function open(more: Partial<AppendLogOptions> = {}): Promise<Opened> {
    const entries: string[] = [];
    const onEntry = (entry: LogEntry): void => void entries.push(describeEntry(entry));
    const onWarning = (warning: Error): void => void warnings.push(warning);
    const options = { disk, folder, clock, random: seededRandom(2), onEntry, onWarning, ...more };
    const { log, damage } = await clock.runUntil(openAppendLog(options));
    return { log, damage, entries };
  }

  function crash(): void {
    clock.dropAll();
    disk.crash();
  }

  test('keeps entries of several streams in order over closing', async () => {
    const { log } = await open();
    expect([log.append('a', 'one'), log.append('b', Buffer.from('two')), log.append('a', '')]).toEqual([1, 2, 3]);
    await clock.runUntil(log.close());
    const second = await open();
    expect(second.entries).toEqual(['1 a one', '2 b two', '3 a ']);
    expect(second.damage).toEqual([]);
    expect(second.log.append('a', 'four')).toBe(4);
    await clock.runUntil(second.log.close());
    expect((await open()).entries).toHaveLength(4);
  });

  test('what was synced survives a crash', async () => {
    const { log } = await open();
    const position = log.append('a', 'kept');
    await clock.runUntil(log.synced(position));
    crash();
    expect((await open()).entries).toEqual(['1 a kept']);
  });

  test('entries nobody waits for are on disk within 50 ms', async () => {
    const { log } = await open();
    log.append('a', 'lazy');
    await clock.runFor(50);
    crash();
    expect((await open()).entries).toEqual(['1 a lazy']);
  });

  test('many waiters share few writes', async () => {
    let writes = 0;
    const opened = disk.open.bind(disk);
    disk.open = async (path) => {
      const file = await opened(path);
      return { ...file, append: (chunks) => (writes++, file.append(chunks)) };
    };
    const { log } = await open();
    const waits: Promise<void>[] = [];
    for (let i = 0; i < 64; i++) {
      waits.push(log.synced(log.append('a', `${i}`)));
      if (i % 8 === 0) await clock.runFor(0.1);
    }
    await clock.runUntil(Promise.all(waits));
    expect(writes).toBeLessThanOrEqual(4);
    await expect(log.synced(1)).resolves.toBeUndefined();
    await expect(log.synced(65)).rejects.toBeInstanceOf(RangeError);
  });

  test.each(['append', 'sync'] as const)(
    'after a failed %s nothing is taken or called durable until it is written after all',
    async (operation) => {
      const { log } = await open();
      await clock.runUntil(log.synced(log.append('a', 'before')));
      disk.failLater(operation, 0, 'ENOSPC: no space left on device');
      const position = log.append('a', 'lost');
      await expect(clock.runUntil(log.synced(position))).rejects.toThrow('ENOSPC');
      expect(() => log.append('a', 'later')).toThrow(LogFailedError);
      await expect(log.synced(position)).rejects.toBeInstanceOf(LogFailedError);
      await expect(log.synced(1)).resolves.toBeUndefined();
      await clock.runFor(2000);
      await expect(log.synced(position)).resolves.toBeUndefined();
      await clock.runUntil(log.synced(log.append('a', 'later')));
      crash();
      expect(await open()).toMatchObject({ entries: ['1 a before', '2 a lost', '3 a later'], damage: [] });
    },
  );

  test.each(['append', 'sync'] as const)(
    'a log that is closed after a failed %s tries once more',
    async (operation) => {
      const failing = async (times: number): Promise<void> => {
        const { log } = await open();
        await clock.runUntil(log.synced(log.append('a', 'before')));
        for (let left = times; left > 0; left--) disk.failLater(operation, 0, 'ENOSPC: no space left on device');
        await expect(clock.runUntil(log.synced(log.append('a', 'late')))).rejects.toThrow('ENOSPC');
        const closed = log.close();
        await expect(
          clock.runUntil(
            closed.then(
              () => log.close(),
              () => log.close(),
            ),
          ),
        ).resolves.toBeUndefined();
        return closed;
      };
      await failing(1);
      crash();
      expect((await open()).entries).toEqual(['1 a before', '2 a late']);
      await expect(failing(2)).rejects.toBeInstanceOf(LogFailedError);
      crash();
      expect((await open()).entries.slice(0, 3)).toEqual(['1 a before', '2 a late', '3 a before']);
    },
  );

  test('takes no more than it may hold in memory', async () => {
    const { log } = await open({ maxGatheredBytes: 1000 });
    log.append('a', 'x'.repeat(900));
    expect(() => log.append('a', 'x'.repeat(900))).toThrow(LogBehindError);
    await clock.runFor(50);
    log.append('a', 'x'.repeat(900));
    expect(() => log.append('a', Buffer.alloc(65 * 1024 * 1024))).toThrow(RangeError);
  });

  test('reads entries longer than its windows and chunks', async () => {
    const { log } = await open();
    const long = 'é'.repeat(1_500_000);
    log.append('a', 'first');
    log.append('a', long);
    log.append('a', 'last');
    await clock.runUntil(log.close());
    expect((await open()).entries).toEqual(['1 a first', `2 a ${long}`, '3 a last']);
  });

  describe('files', () => {
    async function fill(log: AppendLog, count: number): Promise<void> {
      for (let i = 0; i < count; i++) await clock.runUntil(log.synced(log.append('a', 'x'.repeat(100))));
    }

    test('are begun anew as they fill, and released whole', async () => {
      const { log } = await open({ segmentBytes: 1000 });
      await fill(log, 40);
      const all = disk.paths();
      expect(all.length).toBeGreaterThan(3);
      const third = Number(all[2]?.slice(folder.length + 1, -4));
      log.release(third - 1);
      await clock.runFor(100);
      expect(disk.paths()).toEqual(all.slice(1));
      log.release(third);
      await clock.runFor(100);
      expect(disk.paths()).toEqual(all.slice(2));
      log.release(1000);
      await clock.runFor(100);
      expect(disk.paths()).toEqual(all.slice(-1));
      await clock.runUntil(log.close());
      expect(Number((await open()).entries[0]?.split(' ')[0])).toBe(Number(all.at(-1)?.slice(folder.length + 1, -4)));
    });

    test('tell from where on the log is no longer than asked', async () => {
      const { log } = await open({ segmentBytes: 1000 });
      expect(log.oldestWithin(0)).toBe(1);
      await fill(log, 40);
      expect(log.oldestWithin(1e6)).toBe(1);
      const within = log.oldestWithin(3000);
      log.release(within);
      await clock.runFor(100);
      expect(disk.paths().length).toBeLessThanOrEqual(3);
      expect(Number(disk.paths()[0]?.slice(folder.length + 1, -4))).toBe(within);
    });

    test('that cannot be removed are warned of and tried again', async () => {
      const { log } = await open({ segmentBytes: 1000 });
      await fill(log, 20);
      const before = disk.paths();
      const remove = disk.remove.bind(disk);
      disk.remove = () => Promise.reject(new Error('EIO'));
      log.release(1000);
      await clock.runFor(100);
      expect(warnings.map((warning) => warning.message)).toEqual(['EIO']);
      expect(disk.paths()).toEqual(before);
      disk.remove = remove;
      log.release(1000);
      await clock.runFor(100);
      expect(disk.paths()).toHaveLength(1);
    });

    test('of which all went leave positions rising', async () => {
      const { log } = await open({ segmentBytes: 1000 });
      await fill(log, 20);
      log.release(1000);
      await clock.runUntil(log.close());
      const second = await open();
      second.log.release(1000);
      await clock.runFor(100);
      crash();
      expect((await open()).log.append('a', 'x')).toBe(21);
    });
  });

  test('a file that cannot be read is reported, and the others are read', async () => {
    const { log } = await open({ segmentBytes: 100 });
    for (const text of ['one', 'two', 'three']) await clock.runUntil(log.synced(log.append('a', text.repeat(50))));
    await clock.runUntil(log.close());
    const opened = disk.open.bind(disk);
    const [, unreadable = ''] = disk.paths();
    disk.open = (path) => (path === unreadable ? Promise.reject(new Error('EIO: i/o error')) : opened(path));
    const second = await open();
    expect(second.entries.map((entry) => entry.slice(0, 7))).toEqual(['1 a one', '3 a thr']);
    expect(second.damage).toEqual([{ file: unreadable.slice(folder.length + 1), offset: 0, reason: 'unreadable' }]);
    expect(second.log.append('a', 'x')).toBe(4);
  });
});
