import { beforeEach, describe, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { RefusedRecords, deleteRefused, listRefused, readRefused } from '@gpuwhisk/common/activations/refused-records';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { StoreRefusedError, StoreWriteError } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const logger = createLogger({ level: 'silent' });

describe('the record writer', () => {
  let clock: SimulatedClock;
  let store: ArtifactStore;
  let batches: number[];
  let failures: number;
  /** Id of a document that is refused if it is larger than `largest`. */
  let poison: string | undefined;
  let largest: number;
  /** The document is refused only while its JSON has this text. */
  let poisonIn: string;
  let failingPuts: number;
  let stored: string[];
  let writer: RecordWriter;

  beforeEach(() => {
    clock = new SimulatedClock();
    const inner = simulatedStore({ clock, random: seededRandom(1), latencyMs: 4 });
    batches = [];
    failures = 0;
    poison = undefined;
    largest = 0;
    poisonIn = '';
    failingPuts = 0;
    stored = [];
    store = storeLike(inner, {
      createMany(database, documents) {
        batches.push(documents.length);
        if (failures-- > 0) return Promise.reject(new StoreWriteError('disk full'));
        const isRefused = documents.some(
          (document) =>
            document._id === poison && sizeOf(document) > largest && JSON.stringify(document).includes(poisonIn),
        );
        if (isRefused) return Promise.reject(new StoreRefusedError('refused', largest > 0));
        return inner.createMany(database, documents);
      },
      put(...given) {
        return failingPuts-- > 0 ? Promise.reject(new StoreWriteError('disk full')) : inner.put(...given);
      },
    });
    writer = new RecordWriter(store, clock, logger, { maxBatch: 3, gatherMs: 10, maxPendingBytes: 100_000 });
  });

  const sizeOf = (document: object): number => JSON.stringify(document).length;

  const add = (...ids: string[]): void => {
    for (const _id of ids) writer.add({ _id, text: `record ${_id}` }, () => stored.push(_id));
  };
  const read = (id: string): Promise<StoredDocument> => clock.runUntil(store.get('activations', id));

  test('writes what comes within the gathering time together', async () => {
    add('a');
    await clock.runFor(9);
    add('b');
    expect(batches).toEqual([]);
    await clock.runFor(6);
    expect(batches).toEqual([2]);
    expect(stored).toEqual(['a', 'b']);
    expect(writer.pending).toBe(0);
    expect((await read('b')).text).toBe('record b');
  });

  test('writes no more at once than it may, one batch after the other', async () => {
    add('a', 'b', 'c', 'd', 'e', 'f', 'g');
    expect(writer.pending).toBe(7);
    await clock.runFor(100);
    expect(batches).toEqual([3, 3, 1]);
    expect(stored).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  });

  test('tries again, ever more slowly, and says stored only when it is', async () => {
    failures = 3;
    add('a');
    await clock.runFor(10 + 100 + 200 + 399);
    expect(batches).toEqual([1, 1, 1]);
    add('b');
    await clock.runFor(2);
    expect(stored).toEqual([]);
    expect(writer.pending).toBe(2);
    await clock.runFor(50);
    expect(batches).toEqual([1, 1, 1, 1, 1]);
    expect(stored).toEqual(['a', 'b']);
  });

  test('a record that is refused where others are taken keeps none of them waiting', async () => {
    poison = 'b';
    add('a', 'b', 'c');
    await clock.runFor(150);
    expect([...stored].sort()).toEqual(['a', 'c']);
    add('d');
    await clock.runFor(20);
    expect([...stored].sort()).toEqual(['a', 'c', 'd']);
    expect(writer.pending).toBe(1);
    poison = undefined;
    await clock.runFor(5000);
    expect(stored.at(-1)).toBe('b');
    expect((await read('b')).text).toBe('record b');
    expect([writer.pending, writer.refused]).toEqual([0, 0]);
  });

  test('a record that is refused for good is set aside; one without its contents stands in its place, and it is over', async () => {
    poison = 'b';
    poisonIn = '"bad"';
    const contents = { logs: ['a line'], response: { statusCode: 2, result: { text: 'bad' } } };
    writer.add({ _id: 'b', activationId: 'b', ...contents }, () => stored.push('b'));
    add('a');
    await clock.runFor(2000);
    expect([...stored].sort()).toEqual(['a', 'b']);
    expect([writer.pending, writer.pendingBytes, writer.isFull, writer.refused]).toEqual([0, 0, false, 1]);
    const result = { error: 'The record was refused by the store.' };
    expect(await read('b')).toMatchObject({ activationId: 'b', response: { statusCode: 2, result } });
    const [kept] = await clock.runUntil(listRefused(store, { limit: 10 }));
    expect(kept).toMatchObject({ id: 'b', reason: 'refused' });
    expect(await clock.runUntil(readRefused(store, 'b'))).toMatchObject(contents);
    expect(await clock.runUntil(deleteRefused(store, 'b'))).toBe(true);
    expect(await clock.runUntil(listRefused(store, { limit: 10 }))).toEqual([]);
  });

  test('where the one in its place is refused as well, the record is only in the list, and it is over', async () => {
    poison = 'b';
    add('b');
    await clock.runFor(5000);
    expect([stored, writer.pending, writer.refused]).toEqual([['b'], 0, 1]);
    await expect(read('b')).rejects.toThrow();
    expect(await clock.runUntil(readRefused(store, 'b'))).toEqual({ _id: 'b', text: 'record b' });
  });

  test('a store that is out of order while a record is set aside loses nothing', async () => {
    poison = 'b';
    failingPuts = 3;
    add('b');
    await clock.runFor(900);
    expect([stored, writer.pending]).toEqual([[], 1]);
    await clock.runFor(5000);
    expect([stored, writer.pending, writer.refused]).toEqual([['b'], 0, 1]);
  });

  test('of records that are refused the newest are kept', async () => {
    const aside = new RefusedRecords(store, clock, logger, { maxRecords: 2, maxBytes: 5000 });
    const listed = async (): Promise<string[]> =>
      (await clock.runUntil(listRefused(store, { limit: 10 }))).map(({ id }) => id);
    for (const id of ['a', 'd', 'c']) {
      await clock.runUntil(aside.keep({ _id: id }, 'refused'));
      await clock.runFor(100);
    }
    expect(await listed()).toEqual(['c', 'd']);
    await clock.runUntil(aside.keep({ _id: 'large', text: 'x'.repeat(4980) }, 'refused'));
    await clock.runFor(200);
    expect(await listed()).toEqual(['large']);
    expect(aside.count).toBe(4);
  });

  test('a store that fails for all is asked less, by one write at a time, until it answers again', async () => {
    const records = new RecordWriter(store, clock, logger, { maxBatch: 8 });
    failures = 4;
    for (const id of 'abcdefghijkl') records.add({ _id: id }, () => stored.push(id));
    await clock.runFor(10 + 100 + 200 + 400 + 799);
    expect(batches).toEqual([8, 4, 2, 1]);
    await clock.runFor(1000);
    expect(batches.slice(4)).toEqual([1, 2, 4, 5]);
    expect([...stored].sort()).toEqual([...'abcdefghijkl']);
    expect(records.pending).toBe(0);
  });

  test('one write takes no more bytes than it may, unless one record is larger', async () => {
    const records = new RecordWriter(store, clock, logger, { maxBatchBytes: 2500 });
    for (const [at, length] of [900, 900, 900, 9000, 10].entries()) {
      records.add({ _id: `${at}`, text: 'x'.repeat(length) }, () => stored.push(`${at}`));
    }
    await clock.runFor(200);
    expect(batches).toEqual([2, 1, 1, 1]);
    expect(stored).toEqual(['0', '1', '2', '3', '4']);
  });

  test('is full by bytes as by records; who waits for room goes on when some were stored', async () => {
    failures = 1;
    expect(writer.isFull).toBe(false);
    writer.add({ _id: 'large', text: 'x'.repeat(100_000) }, () => stored.push('large'));
    expect([writer.isFull, writer.pendingBytes > 100_000]).toEqual([true, true]);
    let hasRoom = 0;
    for (let n = 0; n < 3; n++) void writer.room().then(() => hasRoom++);
    await clock.runFor(100);
    expect(hasRoom).toBe(0);
    await clock.runFor(100);
    expect([hasRoom, writer.isFull, writer.pendingBytes]).toEqual([3, false, 0]);
    const few = new RecordWriter(store, clock, logger, { maxPending: 2 });
    few.add({ _id: 'a' }, () => undefined);
    expect(few.isFull).toBe(false);
    few.add({ _id: 'b' }, () => undefined);
    expect(few.isFull).toBe(true);
    const waits = few.room();
    await clock.runUntil(few.close());
    await clock.runUntil(waits);
  });

  test('a record that is too large for the store is stored without its logs, then without its result', async () => {
    poison = 'b';
    largest = 1000;
    const response = { statusCode: 0, result: { text: 'r'.repeat(500) } };
    writer.add({ _id: 'b', logs: ['l'.repeat(2000)], response }, () => stored.push('b'));
    await clock.runFor(100);
    expect(stored).toEqual(['b']);
    expect(await read('b')).toMatchObject({ logs: ['The logs were too large to be stored.'], response });
    poison = 'c';
    const large = { statusCode: 0, result: { text: 'r'.repeat(3000) } };
    writer.add({ _id: 'c', logs: ['l'.repeat(2000)], response: large }, () => stored.push('c'));
    await clock.runFor(100);
    expect(await read('c')).toMatchObject({
      logs: ['The logs were too large to be stored.'],
      response: { statusCode: 0, result: { error: 'The result was too large to be stored.' } },
    });
  });

  test('tells how long the oldest record has waited', async () => {
    expect(writer.lagMs).toBe(0);
    failures = 2;
    add('a');
    await clock.runFor(70);
    add('b');
    expect(writer.lagMs).toBe(70);
    await clock.runFor(1000);
    expect([...stored].sort()).toEqual(['a', 'b']);
    expect(writer.lagMs).toBe(0);
  });

  test('large records are written one after the other, beside the batches, which do not wait for them', async () => {
    const slow = storeLike(store, {
      async createMany(database, documents) {
        if (documents.some(({ _id }) => _id.startsWith('large'))) await sleep(clock, 500);
        return await store.createMany(database, documents);
      },
    });
    const records = new RecordWriter(slow, clock, logger);
    const note = (id: string, text: string): void => records.add({ _id: id, text }, () => stored.push(id));
    for (const id of ['large1', 'large2']) note(id, 'x'.repeat(2 << 20));
    note('small', 'x');
    await clock.runFor(100);
    expect(stored).toEqual(['small']);
    expect([records.pending, records.lagMs, records.largeLagMs]).toEqual([2, 0, 100]);
    await clock.runFor(500);
    expect(stored).toEqual(['small', 'large1']);
    await clock.runUntil(records.close());
    expect([stored, records.pending, records.largeLagMs]).toEqual([['small', 'large1', 'large2'], 0, 0]);
  });

  test('waits five seconds at most between tries', async () => {
    failures = 100;
    add('a');
    await clock.runFor(60_000);
    const tries = batches.length;
    await clock.runFor(50_000);
    expect(batches.length - tries).toBe(10);
  });

  test('a record that was stored before stays as it is, and counts as stored', async () => {
    await clock.runUntil(store.createMany('activations', [{ _id: 'a', text: 'first' }]));
    add('a');
    await clock.runFor(100);
    expect(stored).toEqual(['a']);
    expect((await read('a')).text).toBe('first');
  });

  test('close writes what is gathered', async () => {
    add('a', 'b', 'c', 'd');
    await clock.runUntil(writer.close());
    expect(stored).toEqual(['a', 'b', 'c', 'd']);
  });

  test('close gives up on what cannot be written, and does not say it was stored', async () => {
    failures = Infinity;
    add('a', 'b', 'c', 'd');
    await clock.runFor(20);
    await clock.runUntil(writer.close());
    expect(stored).toEqual([]);
    expect(writer.pending).toBe(0);
  });

  test('close waits five seconds at most for a store that hangs', async () => {
    const hangs = storeLike(store, { createMany: () => new Promise<never>(() => undefined) });
    const records = new RecordWriter(hangs, clock, logger);
    records.add({ _id: 'a' }, () => stored.push('a'));
    await clock.runFor(20);
    const beganMs = clock.monotonicMs();
    await clock.runUntil(records.close());
    expect(clock.monotonicMs() - beganMs).toBe(5000);
    expect(stored).toEqual([]);
  });
});
