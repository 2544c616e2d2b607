import { describe, expect, test } from '@jest/globals';
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
