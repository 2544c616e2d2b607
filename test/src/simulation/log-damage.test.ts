import { describe, expect, test } from '@jest/globals';
import type { LogDamage, LogEntry } from '@gpuwhisk/common/bus/append-log';
import { LocalStartJournal, openDurable } from '@gpuwhisk/common/bus/durable';
import type { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { openAppendLog } from '@gpuwhisk/common/bus/file-log';
import { entryHeaderBytes, fileHeaderBytes, markBytes } from '@gpuwhisk/common/bus/log-format';
import type { Disk } from '@gpuwhisk/common/system/disk';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { seededRandom } from '@gpuwhisk/common/system/random';

const folder = '/log';

/** Files in memory, without delays or losses. */
function memoryDisk(files: Map<string, Buffer>): Disk {
  return {
    open: (path) => {
      if (!files.has(path)) files.set(path, Buffer.alloc(0));
      const bytes = (): Buffer => files.get(path) ?? Buffer.alloc(0);
      return Promise.resolve({
        append: (chunks) => Promise.resolve(void files.set(path, Buffer.concat([bytes(), ...chunks]))),
        read: (offset, length) => Promise.resolve(Uint8Array.from(bytes().subarray(offset, offset + length))),
        sync: () => Promise.resolve(),
        truncate: (length) => Promise.resolve(void files.set(path, bytes().subarray(0, length))),
        size: () => Promise.resolve(bytes().length),
        close: () => Promise.resolve(),
      });
    },
    list: () => Promise.resolve([...files.keys()].map((path) => path.slice(folder.length + 1)).sort()),
    makeFolder: () => Promise.resolve(),
    remove: (path) => Promise.resolve(void files.delete(path)),
    rename: () => Promise.reject(new Error('not needed')),
  };
}

interface Read {
  entries: string[];
  positions: number[];
  damage: LogDamage[];
}

/** Opens the log, appends `texts`, closes it. */
async function session(
  files: Map<string, Buffer>,
  random: Random,
  texts: string[],
  segmentBytes = 3000,
): Promise<Read> {
  const read: Read = { entries: [], positions: [], damage: [] };
  const onEntry = (entry: LogEntry): void => {
    read.entries.push(`${entry.stream} ${Buffer.from(entry.payload).toString('latin1')}`);
    read.positions.push(entry.position);
  };
  const options = { disk: memoryDisk(files), folder, clock: systemClock, random, onEntry, segmentBytes };
  const { log, damage } = await openAppendLog(options);
  read.damage = damage;
  for (const text of texts) await log.synced(log.append('stream', text));
  await log.close();
  return read;
}

function texts(random: Random, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}:${'abcdefgh'.repeat(random.uint32() % 30)}`);
}

const copyOf = (files: Map<string, Buffer>): Map<string, Buffer> =>
  new Map([...files].map(([path, bytes]) => [path, Buffer.from(bytes)]));
const pick = <Item>(random: Random, items: readonly Item[]): Item => items[random.uint32() % items.length] as Item;

/** Runs `run` for seeds 0, 1, ... for a second and a half, at least 50 of them, and names the one that failed. */
async function forSeeds(run: (random: Random) => Promise<void>): Promise<void> {
  const endMs = systemClock.monotonicMs() + 1500;
  for (let seed = 0; seed < 50 || systemClock.monotonicMs() < endMs; seed++) {
    try {
      await run(seededRandom(seed));
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}

describe('a damaged log', () => {
  test('one flipped bit costs one entry at most, is reported, and stops nothing', () =>
    forSeeds(async (random) => {
      const files = new Map<string, Buffer>();
      await session(files, random, texts(random, 20));
      const { entries, damage } = await session(copyOf(files), random, []);
      expect(damage).toEqual([]);
      const path = pick(random, [...files.keys()]);
      const bytes = files.get(path) as Buffer;
      const at = random.uint32() % bytes.length;
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (random.uint32() % 8));
      const after = await session(files, random, ['more']);
      expect(after.damage).toHaveLength(1);
      expect(after.damage[0]?.file).toBe(path.slice(folder.length + 1));
      expect(after.damage[0]?.offset).toBeLessThanOrEqual(at);
      const lost = entries.filter((entry) => !after.entries.includes(entry));
      expect(lost.length).toBe(at < fileHeaderBytes ? 0 : 1);
      expect(after.entries).toEqual(entries.filter((entry) => !lost.includes(entry)));
      const last = await session(files, random, []);
      expect(last.entries).toEqual([...after.entries, 'stream more']);
    }));

  test('a torn tail costs what was torn, is cut, and is not reported again', () =>
    forSeeds(async (random) => {
      const files = new Map<string, Buffer>();
      await session(files, random, texts(random, 10));
      const { entries } = await session(copyOf(files), random, []);
      const path = [...files.keys()].sort().at(-1) ?? '';
      const whole = files.get(path) as Buffer;
      const length = random.uint32() % whole.length;
      const zeros = pick(random, [0, 0, 700]);
      files.set(path, Buffer.concat([whole.subarray(0, length), Buffer.alloc(zeros)]));
      const after = await session(files, random, []);
      expect(after.entries).toEqual(entries.slice(0, after.entries.length));
      for (const { reason, file } of after.damage) {
        expect(reason).toBe('torn tail');
        expect(file).toBe(path.slice(folder.length + 1));
      }
      const again = await session(files, random, ['more', 'again']);
      expect(again.damage).toEqual([]);
      expect(again.entries).toEqual(after.entries);
      const last = await session(files, random, []);
      expect(last.entries).toEqual([...after.entries, 'stream more', 'stream again']);
      expect(last.damage).toEqual([]);
    }));

  test('whatever happens to it, what is read was written, in order, and appending goes on', () =>
    forSeeds(async (random) => {
      const files = new Map<string, Buffer>();
      for (let life = 0; life < 3; life++) await session(files, random, texts(random, 8));
      const { entries } = await session(copyOf(files), random, []);
      for (let harm = 1 + (random.uint32() % 6); harm > 0; harm--) damageSomehow(files, random);
      const after = await session(files, random, ['more']);
      let at = -1;
      for (const entry of after.entries) {
        at = entries.indexOf(entry, at + 1);
        expect(at).not.toBe(-1);
      }
      expect(after.positions).toEqual([...new Set(after.positions)].sort((a, b) => a - b));
      const last = await session(files, random, []);
      expect(last.entries).toEqual([...after.entries, 'stream more']);
      expect(last.positions).toEqual([...new Set(last.positions)].sort((a, b) => a - b));
    }));

  test('a payload that holds a whole log cannot pass for entries', async () => {
    const inner = new Map<string, Buffer>();
    await session(inner, seededRandom(1), ['forged']);
    const [forged = Buffer.alloc(0)] = inner.values();
    const files = new Map<string, Buffer>();
    await session(files, seededRandom(2), [forged.toString('latin1'), 'after']);
    const [bytes = Buffer.alloc(0)] = files.values();
    bytes[fileHeaderBytes + markBytes] = (bytes[fileHeaderBytes + markBytes] ?? 0) ^ 1;
    const { entries, damage } = await session(files, seededRandom(3), []);
    expect(entries).toEqual(['stream after']);
    expect(damage).toEqual([{ file: '0000000000000001.log', offset: fileHeaderBytes, reason: 'bad checksum' }]);
    expect(entryHeaderBytes).toBe(24);
  });
});

const topicOptions = { durable: true, maxPendingMessages: 100, maxPendingBytes: 1e6 };
const optionsOn = (
  files: Map<string, Buffer>,
): { disk: Disk; folder: string; clock: typeof systemClock; random: Random } => ({
  ...{ disk: memoryDisk(files), folder, clock: systemClock, random: seededRandom(1) },
});

/** Runs `check` with each byte of each file flipped. */
async function forFlippedBytes(
  files: Map<string, Buffer>,
  check: (damaged: Map<string, Buffer>) => Promise<void>,
): Promise<void> {
  for (const [path, bytes] of files) {
    for (let at = 0; at < bytes.length; at++) {
      const damaged = copyOf(files);
      damaged.get(path)?.writeUInt8(bytes.readUInt8(at) ^ 0xff, at);
      await check(damaged);
    }
  }
}

/** Opens a log with messages; resolves with the ids of messages that are left and permitted to run. */
async function permittedRuns(files: Map<string, Buffer>): Promise<{ left: string[]; permitted: string[] }> {
  const { bus, marks, log } = await openDurable(optionsOn(files));
  const left = Array.from((bus as EmbeddedBus).unfinished(), ({ activationId }) => String(activationId));
  await log.close();
  return { left, permitted: left.filter((id) => !marks.startedBefore(id)) };
}

describe('a damaged start mark', () => {
  test('permits no second run, whichever byte is flipped, and is whole again after the next start', async () => {
    const files = new Map<string, Buffer>();
    const { bus, marks, log } = await openDurable(optionsOn(files));
    await bus.ensureTopic('t', topicOptions);
    await bus.send('t', { activationId: 'waiting' }).synced();
    await bus.send('t', { activationId: 'begun' }).synced();
    await marks.mark('begun')();
    const crashed = copyOf(files);
    await log.close();
    expect(await permittedRuns(copyOf(crashed))).toEqual({ left: ['waiting', 'begun'], permitted: ['waiting'] });
    await forFlippedBytes(crashed, async (damaged) => {
      expect((await permittedRuns(damaged)).permitted).not.toContain('begun');
    });
    // Two flips, with a start between them.
    const [bytes = Buffer.alloc(0)] = crashed.values();
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    await permittedRuns(crashed);
    const first = bytes.indexOf('marksbegun');
    bytes.writeUInt8(bytes.readUInt8(first) ^ 1, first);
    expect(await permittedRuns(crashed)).toEqual({ left: ['waiting', 'begun'], permitted: ['waiting'] });
  });

  test('of a message that is kept elsewhere permits no second run', async () => {
    const open = (files: Map<string, Buffer>): Promise<LocalStartJournal> =>
      LocalStartJournal.open({ ...optionsOn(files), keepMs: 60_000 });
    const files = new Map<string, Buffer>();
    const marks = await open(files);
    await marks.mark('earlier')();
    await marks.mark('begun')();
    const crashed = copyOf(files);
    await marks.close();
    await forFlippedBytes(crashed, async (damaged) => {
      const next = await open(damaged);
      expect(['earlier', 'begun', 'other'].map((id) => next.startedBefore(id))).toEqual([true, true, false]);
      await next.close();
    });
  });

  test('of the former form, one entry, counts', async () => {
    const files = new Map<string, Buffer>();
    const { log } = await openAppendLog({ ...optionsOn(files), onEntry: () => undefined });
    log.append('bus.topic.t', JSON.stringify({ activationId: 'begun' }));
    await log.synced(log.append('marks', 'begun'));
    await log.close();
    expect(await permittedRuns(files)).toEqual({ left: ['begun'], permitted: [] });
  });
});

function damageSomehow(files: Map<string, Buffer>, random: Random): void {
  const path = pick(random, [...files.keys()]);
  const bytes = files.get(path) as Buffer;
  const at = random.uint32() % (bytes.length + 1);
  const length = random.uint32() % 400;
  switch (random.uint32() % 6) {
    case 0:
      bytes.fill(0, at, Math.min(bytes.length, at + length));
      break;
    case 1:
      bytes.set(random.bytes(Math.min(length, bytes.length - at)), at);
      break;
    case 2:
      files.set(path, Buffer.from(bytes.subarray(0, at)));
      break;
    case 3:
      files.set(path, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]));
      break;
    case 4:
      // The file contains one stretch twice, as from a disk that repeats data.
      files.set(path, Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]));
      break;
    default:
      if (files.size > 1) files.delete(path);
  }
}
