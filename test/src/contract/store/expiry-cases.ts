import { describe, expect, test } from '@jest/globals';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { TextQuery } from '@gpuwhisk/common/store/artifact-store';
import { action, activation, idsIn, newestFirst } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for records that are removed after their retention time. */
export function testExpiry(held: StoreUnderTest): void {
  const expire = async (beforeMs: number): Promise<number> => {
    let removed = 0;
    for await (const count of held.store.expire(beforeMs)) removed += count;
    return removed;
  };
  const listed = (path = 'guest'): Promise<unknown[]> => idsIn(held.store, newestFirst('activations', path));
  /** Ids of the records that a query gives, whose view's name may be either. */
  const textIds = async (query: Omit<TextQuery, 'reader' | 'descending'> & { reader?: string }): Promise<unknown[]> => {
    const pieces: string[] = [];
    for await (const piece of held.store.texts('activations', { reader: 'guest', ...query, descending: true }))
      pieces.push(Buffer.from(piece).toString());
    const records = JSON.parse(`[${pieces.join(',')}]`) as { activationId: string }[];
    return records.map(({ activationId }) => `guest/${activationId}`);
  };
  const idOf = (number: number): string => activation(number, 0)._id;

  describe('expiry', () => {
    test('removes the records that ended before, of all namespaces, and their rows', async () => {
      const other = { ...activation(9, 100), _id: 'other/9', namespace: 'other' };
      const batch = Array.from({ length: 6 }, (_, n) => activation(n, n * 100));
      await held.store.createMany('activations', [...batch, other]);
      await held.store.put('whisks', action('hello', 1));
      // These activations ended 5 ms after their start.
      expect(await expire(305)).toBe(4);
      expect(await listed()).toEqual([idOf(5), idOf(4), idOf(3)]);
      expect(await listed('other')).toEqual([]);
      expect(await idsIn(held.store, newestFirst('activations-by-name', 'guest/hello'))).toEqual(await listed());
      expect(await held.store.count('activations', newestFirst('activations', 'guest'))).toBe(3);
      await expect(held.store.get('activations', idOf(2))).rejects.toThrow('no document');
      expect((await held.store.get('activations', idOf(3))).name).toBe('hello');
      expect((await held.store.get('whisks', 'guest/hello')).updated).toBe(1);
      expect(await held.store.list('activations', { limit: 10 })).toHaveLength(3);
      expect(await expire(305)).toBe(0);
    });

    test('goes by the end of a record: what started long ago and ended now stays; one without an end goes by its start', async () => {
      await held.store.createMany('activations', [
        activation(1, 100, { end: 5000, duration: 4900 }),
        activation(2, 100, { end: 0 }),
        activation(3, 3000, { end: 0 }),
      ]);
      expect(await expire(2000)).toBe(1);
      expect(await listed()).toEqual([idOf(3), idOf(1)]);
      expect(await expire(5001)).toBe(2);
      expect(await listed()).toEqual([]);
    });

    test('removes more than one batch, while others are created', async () => {
      const many = Array.from({ length: 1200 }, (_, n) => activation(n, n));
      const kept = activation(1500, 0, { end: 1_000_000 });
      await held.store.createMany('activations', [...many, kept]);
      let removed = 0;
      let added = 2000;
      for await (const count of held.store.expire(10_000)) {
        removed += count;
        await held.store.createMany('activations', [activation(++added, 20_000 + added)]);
      }
      expect(removed).toBe(1200);
      const expected = Array.from({ length: added - 2000 }, (_, n) => idOf(added - n));
      expect(await listed()).toEqual([...expected, kept._id]);
      expect(await idsIn(held.store, newestFirst('activations-by-name', 'guest/hello'))).toEqual(await listed());
    });

    test('what has ended before is in no list and no count from then on, and an older record that ended later is', async () => {
      const young = Array.from({ length: 6 }, (_, n) => activation(n, 500 + n * 100));
      const ended = Array.from({ length: 30 }, (_, n) => activation(100 + n, n * 10, { end: 400 + n, duration: 400 }));
      const long = [activation(200, 5, { end: 5000 }), activation(201, 255, { end: 5000 }), activation(202, 495)];
      await held.store.createMany('activations', [
        ...young,
        ...ended,
        ...long,
        { ...activation(3, 1), _id: 'other/3', namespace: 'other' },
      ]);
      const endedSince = 500;
      const shown = [...[...young].reverse(), ...[202, 201, 200].map((n) => activation(n, 0))].map(({ _id }) => _id);
      for (const [view, path] of [
        ['activations', 'guest'],
        ['activations-by-name', 'guest/hello'],
      ] as const) {
        const query = { view, startKey: [path, 0], endKey: [path, '\ufff0', '\ufff0'], endedSince, reader: 'guest' };
        expect(await held.store.count('activations', query)).toBe(shown.length);
        for (const [skip, limit] of [
          [0, 30],
          [0, 3],
          [2, 5],
          [5, 1],
          [6, 30],
          [7, 1],
          [8, 5],
          [9, 5],
          [40, 5],
        ] as const)
          for (const as of ['value', 'activation'] as const)
            expect([skip, limit, await textIds({ ...query, skip, limit, as })]).toEqual([
              skip,
              limit,
              shown.slice(skip, skip + limit),
            ]);
        // Ranges with ends before, at and behind the time.
        const within = async (since: number, upto: number): Promise<unknown[]> => {
          const range = { ...query, startKey: [path, since], endKey: [path, upto, '\ufff0'] };
          const ids = await textIds({ ...range, as: 'value' });
          expect(await held.store.count('activations', range)).toBe(ids.length);
          return ids;
        };
        expect(await within(0, 300)).toEqual([idOf(201), idOf(200)]);
        expect(await within(6, 300)).toEqual([idOf(201)]);
        expect(await within(255, 500)).toEqual([idOf(0), idOf(202), idOf(201)]);
        expect(await within(500, 600)).toEqual([idOf(1), idOf(0)]);
        expect(await within(700, 9000)).toEqual([idOf(5), idOf(4), idOf(3), idOf(2)]);
      }
      const text = (number: number): Promise<Uint8Array> =>
        held.store.text('activations', idOf(number), 'activation', 'guest', endedSince);
      await expect(text(100)).rejects.toBeInstanceOf(NoDocumentError);
      for (const number of [0, 200, 201, 202])
        expect(JSON.parse(Buffer.from(await text(number)).toString())).toHaveProperty('end');
      // They are there until they are removed, for those who ask for all.
      expect(await held.store.count('activations', newestFirst('activations', 'guest'))).toBe(39);
    });

    test('a backlog is hidden from long lists, and worked off while records are created', async () => {
      const old = Array.from({ length: 1000 }, (_, n) => activation(n, n));
      const long = activation(9000, 500, { end: 1_000_000 });
      const young = Array.from({ length: 1100 }, (_, n) => activation(10_000 + n, 10_000 + n));
      await held.store.createMany('activations', [...old, long, ...young]);
      const all = { ...newestFirst('activations', 'guest'), endedSince: 10_000, reader: 'guest', as: 'value' } as const;
      expect(await held.store.count('activations', all)).toBe(1101);
      const last = [...young.slice(0, 20).reverse(), long].map(({ _id }) => _id);
      expect(await textIds({ ...all, skip: 1080, limit: 200 })).toEqual(last);
      expect(await textIds({ ...all, skip: 1100, limit: 5 })).toEqual([long._id]);
      expect(await textIds({ ...all, skip: 1101, limit: 5 })).toEqual([]);
      const steps: number[] = [];
      for await (const removed of held.store.expire(10_000)) {
        steps.push(removed);
        await held.store.createMany('activations', [activation(20_000 + steps.length, 20_000 + steps.length)]);
        if (steps.length <= 3) expect(await textIds({ ...all, limit: 1 })).toEqual([idOf(20_000 + steps.length)]);
      }
      expect(steps.reduce((sum, one) => sum + one)).toBe(1000);
      expect(await held.store.count('activations', newestFirst('activations', 'guest'))).toBe(1101 + steps.length);
      expect((await held.store.get('activations', long._id)).end).toBe(1_000_000);
    });

    test('what has expired is not there after opening again, and its id may be used again', async () => {
      await held.store.createMany('activations', [activation(1, 1), activation(2, 2000)]);
      expect(await expire(1000)).toBe(1);
      await held.store.close();
      held.store = await held.home.open();
      expect(await listed()).toEqual([idOf(2)]);
      expect(await held.store.createMany('activations', [activation(1, 3000)])).toEqual([true]);
      expect(await listed()).toEqual([idOf(1), idOf(2)]);
    });
  });
}
