import { beforeEach, describe, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/store/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const logger = createLogger({ level: 'silent' });

describe('the record writer', () => {
  let clock: SimulatedClock;
  let store: ArtifactStore;
  let batches: number[];
  let failures: number;
  let poison: string | undefined;
  let stored: string[];
  let writer: RecordWriter;

  beforeEach(() => {
    clock = new SimulatedClock();
    const inner = simulatedStore({ clock, random: seededRandom(1), latencyMs: 4 });
    batches = [];
    failures = 0;
    poison = undefined;
    stored = [];
    store = storeLike(inner, {
      createMany(database, documents) {
        batches.push(documents.length);
        const refused = failures-- > 0 || documents.some(({ _id }) => _id === poison);
        return refused ? Promise.reject(new Error('disk full')) : inner.createMany(database, documents);
      },
    });
    writer = new RecordWriter(store, clock, logger, { maxBatch: 3, gatherMs: 10 });
  });

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
    expect(writer.pending).toBe(0);
  });

  test('tells how long the oldest record has waited', async () => {
    expect(writer.lagMs).toBe(0);
    failures = 2;
    add('a');
    await clock.runFor(70);
    add('b');
    expect(writer.lagMs).toBe(70);
    await clock.runFor(1000);
    expect(stored).toEqual(['a', 'b']);
    expect(writer.lagMs).toBe(0);
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
});
