import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../system/clock.js';
import { systemDisk } from '../system/disk.js';
import { systemRandom } from '../system/random.js';
import { LocalStartJournal } from './durable.js';

describe('start marks of messages that are kept elsewhere', () => {
  let folder: string;
  let nowMs: number;
  const clock = { ...systemClock, now: () => nowMs };
  const open = (): Promise<LocalStartJournal> =>
    LocalStartJournal.open({ disk: systemDisk, folder, clock, random: systemRandom, keepMs: 1000 });

  beforeEach(async () => {
    nowMs = 1_000_000;
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-marks-'));
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('are known to the next process until they are forgotten', async () => {
    let marks = await open();
    await marks.mark('a')();
    await marks.mark('b')();
    expect(marks.startedBefore('a')).toBe(false);
    marks.forget('b');
    await marks.close();

    marks = await open();
    expect(['a', 'b'].map((id) => marks.startedBefore(id))).toEqual([true, false]);
    marks.forget('a');
    expect(marks.startedBefore('a')).toBe(false);
    await marks.close();

    marks = await open();
    expect(marks.startedBefore('a')).toBe(false);
    await marks.close();
  });

  test('one that began twice is forgotten once for all', async () => {
    let marks = await open();
    await marks.mark('a')();
    await marks.close();
    marks = await open();
    await marks.mark('a')();
    marks.forget('a');
    await marks.close();
    marks = await open();
    expect(marks.startedBefore('a')).toBe(false);
    await marks.close();
  });

  test('go when no message of their age can come again', async () => {
    let marks = await open();
    await marks.mark('old')();
    nowMs += 600;
    await marks.mark('young')();
    await marks.close();
    nowMs += 600;
    marks = await open();
    expect(['old', 'young'].map((id) => marks.startedBefore(id))).toEqual([false, true]);
    await marks.close();
  });
});
