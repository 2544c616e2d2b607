import { describe, expect, test } from '@jest/globals';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { GroupProgress } from './group-progress.js';
import type { FetchedMessage } from './group-progress.js';

const messages = (...offsets: number[]): FetchedMessage[] =>
  offsets.map((offset) => ({ offset, message: { n: offset }, bytes: 10 }));

function start(committed = { offset: 0, metadata: '' }, redeliveredBelow = 0, maxUncommitted = Infinity) {
  const done: number[] = [];
  const progress = new GroupProgress(
    (offset) => done.push(offset),
    () => undefined,
    maxUncommitted,
  );
  progress.begin(committed, redeliveredBelow);
  return { progress, done };
}

async function consume(progress: GroupProgress, maxInFlight = 100): Promise<Delivery[]> {
  const got: Delivery[] = [];
  progress.subscribe(maxInFlight, (delivery) => got.push(delivery));
  await Promise.resolve();
  return got;
}

describe('the progress of a group', () => {
  test('what is done out of order is part of what is committed, and does not come again', async () => {
    const { progress } = start();
    progress.take(messages(0, 1, 2, 3, 4), 5);
    const got = await consume(progress);
    for (const index of [0, 2, 4]) got[index]?.done();
    expect(progress.committed()).toEqual({ offset: 1, metadata: '1,3' });
    expect(progress.lag(5)).toBe(2);
    const next = start(progress.committed(), 5);
    next.progress.take(messages(1, 2, 3, 4, 5), 6);
    const again = await consume(next.progress);
    expect(again.map(({ offset, redelivered }) => [offset, redelivered])).toEqual([
      [1, true],
      [3, true],
      [5, false],
    ]);
  });

  test('offsets that hold nothing count as done', async () => {
    const { progress } = start();
    progress.take(messages(2, 3), 6);
    const got = await consume(progress);
    for (const delivery of got) delivery.done();
    expect(progress.committed()).toEqual({ offset: 6, metadata: '' });
    expect(progress.lag(6)).toBe(0);
  });

  test('an answer that holds only what is skipped is committed too', () => {
    const { progress, done } = start();
    progress.take([], 3);
    expect(progress.committed().offset).toBe(3);
    expect(done.length).toBe(1);
  });

  test('metadata of others says nothing', async () => {
    const { progress } = start({ offset: 4, metadata: 'consumer-1' });
    progress.take(messages(3, 4, 5), 6);
    expect((await consume(progress)).map(({ offset }) => offset)).toEqual([4, 5]);
  });

  test('one message in hand for long costs no memory for those behind it', async () => {
    const { progress } = start();
    const got = await consume(progress, 2);
    for (let offset = 0; offset < 10_000; offset++) {
      progress.take(messages(offset), offset + 1);
      await Promise.resolve();
      if (offset > 0) got.at(-1)?.done();
    }
    expect(progress.committed()).toEqual({ offset: 0, metadata: '1-9999' });
  });

  test('what another process has done meanwhile does not come, and what it may have seen is marked', async () => {
    const { progress } = start();
    progress.take(messages(0, 1, 2, 3, 4), 5);
    await consume(progress, 3);
    progress.unsubscribe();
    progress.resume({ offset: 1, metadata: '1,3,5' }, 9);
    progress.take(messages(5, 6, 7, 8, 9), 10);
    const got = await consume(progress);
    expect(got.map(({ offset, redelivered }) => [offset, redelivered])).toEqual([
      [1, true],
      [3, true],
      [5, true],
      [7, true],
      [8, true],
      [9, false],
    ]);
    for (const delivery of got) delivery.done();
    expect([progress.committed(), progress.lag(10), progress.waitingBytes]).toEqual([
      { offset: 10, metadata: '' },
      0,
      0,
    ]);
  });

  test('it goes on where another process has stopped that was ahead of it', async () => {
    const { progress } = start();
    progress.take(messages(0, 1), 2);
    await consume(progress);
    progress.unsubscribe();
    progress.resume({ offset: 7, metadata: '' }, 8);
    expect([progress.nextOffset, progress.lag(8)]).toEqual([7, 1]);
    progress.take(messages(7), 8);
    expect((await consume(progress)).map(({ offset }) => offset)).toEqual([7]);
  });

  test('no more is delivered while too much that is done is not committed', async () => {
    const { progress } = start(undefined, 0, 3);
    progress.take(messages(0, 1, 2, 3, 4, 5), 6);
    const got: number[] = [];
    progress.subscribe(1, ({ offset, done }) => {
      got.push(offset);
      done();
    });
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    expect(got).toEqual([0, 1, 2]);
    progress.settle(2);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    expect(got).toEqual([0, 1, 2, 3, 4]);
  });

  test('a log that is shorter than it was is read from its beginning, and what was in hand ends nothing', async () => {
    const { progress } = start();
    progress.take(messages(0, 1, 2), 3);
    const before = await consume(progress);
    progress.restart(0, 2);
    progress.take(messages(0, 1, 2), 3);
    await Promise.resolve();
    expect(before.slice(3).map(({ offset, redelivered }) => [offset, redelivered])).toEqual([
      [0, true],
      [1, true],
      [2, false],
    ]);
    before[0]?.done();
    expect(progress.lag(3)).toBe(3);
    before[3]?.done();
    expect(progress.lag(3)).toBe(2);
  });
});
