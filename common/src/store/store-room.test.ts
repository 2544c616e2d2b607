import { expect, test } from '@jest/globals';
import { StoreFullError } from './artifact-store.js';
import { leaving, StoreRoom } from './store-room.js';

const MiB = 1024 * 1024;

/** A disk of `freeMiB`, on which a file has `ahead` bytes behind its end. */
function disk(freeMiB: number) {
  const state = { free: freeMiB * MiB, ahead: 0, looks: 0 };
  const extend = (wanted: number): Promise<number> => {
    state.looks++;
    const more = Math.min(Math.max(0, wanted - state.ahead), state.free);
    state.free -= more;
    state.ahead += more;
    return Promise.resolve(state.ahead);
  };
  /** A write that makes the file grow. */
  const grow = (bytes: number) => (): Promise<void> => {
    state.ahead -= bytes;
    if (state.ahead < 0) throw new Error('ENOSPC');
    return Promise.resolve();
  };
  return { state, grow, space: { extend, isHeld: true, close: () => Promise.resolve() } };
}

test('as the disk fills, entities stop first, then records, and removals last; none meets the end', async () => {
  const { state, space, grow } = disk(100);
  const room = await StoreRoom.open(space);
  const write = (keep: number): Promise<boolean> =>
    room.write(MiB, keep, grow(MiB)).then(
      () => true,
      (error: unknown) => {
        if (error instanceof StoreFullError) return false;
        throw error as Error;
      },
    );
  const until = async (keep: number): Promise<number> => {
    while (await write(keep));
    return state.ahead + state.free;
  };
  expect(room.isFull).toBe(false);
  expect(await until(leaving.acceptance)).toBeGreaterThanOrEqual(leaving.acceptance);
  expect(await write(leaving.record)).toBe(true);
  expect(await until(leaving.record)).toBeGreaterThanOrEqual(leaving.record);
  expect(room.isFull).toBe(true);
  expect(await write(leaving.removal)).toBe(true);
  expect(await until(leaving.removal)).toBeGreaterThanOrEqual(leaving.removal);
  // Free space is found again, by the question as well.
  state.free = 200 * MiB;
  expect(room.isFull).toBe(true);
  await new Promise(setImmediate);
  expect(room.isFull).toBe(false);
  expect(await write(leaving.acceptance)).toBe(true);
});

test('writes at once are admitted for what they take together', async () => {
  const { space, grow } = disk(64);
  const room = await StoreRoom.open(space);
  const held: (() => void)[] = [];
  const large = (): Promise<unknown> =>
    room
      .write(10 * MiB, leaving.acceptance, async () => {
        await new Promise<void>((resolve) => held.push(resolve));
        await grow(10 * MiB)();
      })
      .catch((error: unknown) => error);
  const writes = Array.from({ length: 6 }, large);
  await new Promise(setImmediate);
  // 64 MiB less those that are left: three of 10.5.
  expect(held).toHaveLength(3);
  for (const release of held) release();
  const ends = await Promise.all(writes);
  expect(ends.filter((end) => end instanceof StoreFullError)).toHaveLength(3);
});

test('while a disk with space is asked for more, nothing is full: large writes wait for it', async () => {
  const { space, grow } = disk(1000);
  let answer: (() => void) | undefined;
  const asked: number[] = [];
  const extend = async (wanted: number): Promise<number> => {
    asked.push(wanted);
    if (asked.length > 1) await new Promise<void>((resolve) => (answer = resolve));
    return await space.extend(wanted);
  };
  const room = await StoreRoom.open({ ...space, extend });
  const writes = Array.from({ length: 15 }, () => room.write(20 * MiB, leaving.record, grow(20 * MiB)));
  let ended = false;
  const all = Promise.all(writes).finally(() => (ended = true));
  // 15 writes of 20.5 MiB are more than is ahead.
  while (!ended) {
    expect(room.isFull).toBe(false);
    await new Promise(setImmediate);
    answer?.();
  }
  await all;
  expect(room.isFull).toBe(false);
  expect(asked.length).toBeGreaterThan(1);
});

test('a disk with space is looked at once for many writes', async () => {
  const { state, space, grow } = disk(1000);
  const room = await StoreRoom.open(space);
  for (let n = 0; n < 1000; n++) await room.write(8192, leaving.record, grow(8192));
  // Each write counts for half a MiB.
  expect(state.looks).toBeLessThan(20);
});

test('a disk without space opens no store', async () => {
  await expect(StoreRoom.open(disk(1).space)).rejects.toBeInstanceOf(StoreFullError);
});
