import { describe, expect, test } from '@jest/globals';
import type { TextQuery } from '@gpuwhisk/common/store/artifact-store';
import { mostReads } from '@gpuwhisk/common/store/read-queue';
import { action, activation, newestFirst } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for rows and documents as JSON texts, also of long lists. */
export function testTexts(held: StoreUnderTest): void {
  type Options = Partial<Omit<TextQuery, 'reader'>>;
  const listOf = async (view: TextQuery['view'], path: string, options: Options = {}): Promise<unknown[]> => {
    const query: TextQuery = { ...newestFirst(view, path), as: 'value', reader: 'guest', ...options };
    const pieces: string[] = [];
    const database = view.startsWith('activations') ? 'activations' : 'whisks';
    for await (const piece of held.store.texts(database, query)) pieces.push(Buffer.from(piece).toString('utf8'));
    return JSON.parse(`[${pieces.join(',')}]`) as unknown[];
  };
  const numbers = (list: unknown[]): number[] => list.map((one) => (one as { start: number }).start);
  const down = (from: number, to: number): number[] => Array.from({ length: from - to + 1 }, (_, n) => from - n);
  const create = async (count: number, more: Parameters<typeof activation>[2] = {}): Promise<void> => {
    const records = Array.from({ length: count }, (_, n) => activation(n + 1, n + 1, more));
    await held.store.createMany('activations', records);
  };

  describe('texts', () => {
    test('of values are what a query gives', async () => {
      await held.store.put('whisks', action('a', 1));
      await held.store.put('whisks', action('b', 2));
      const rows = await held.store.query('whisks', newestFirst('actions', 'guest'));
      expect(await listOf('actions', 'guest')).toEqual(rows.map(({ value }) => value));
      expect(await listOf('actions', 'absent')).toEqual([]);
      const entity = { ...(await held.store.get('whisks', 'guest/b')) } as Record<string, unknown>;
      for (const field of ['_id', '_rev', 'entityType']) delete entity[field];
      expect(await listOf('actions', 'guest', { as: 'entity', limit: 1 })).toEqual([entity]);
    });

    test('may be left in the middle: more such reads than one reader may have leave nothing behind', async () => {
      await create(200, { response: { statusCode: 0, result: { text: 'x'.repeat(5000) } } });
      const query: TextQuery = { ...newestFirst('activations', 'guest'), as: 'activation', reader: 'guest' };
      for (let read = 0; read < mostReads + 6; read += 1) {
        let pieces = 0;
        // The first is read at once, without a place in the queue.
        for await (const piece of held.store.texts('activations', query)) {
          expect(piece.length).toBeGreaterThan(0);
          if (++pieces === 2) break;
        }
      }
      expect(await listOf('activations', 'guest', { as: 'activation' })).toHaveLength(200);
    });

    test('of records are as the API shows them, however long they are together', async () => {
      await create(20, { logs: ['x'.repeat(50_000)] });
      const list = await listOf('activations', 'guest', { as: 'activation', skip: 3, limit: 12 });
      expect(numbers(list)).toEqual(down(17, 6));
      expect(list[0]).toMatchObject({ name: 'hello', response: { status: 'success', success: true } });
    });

    test('of many rows, read on from the middle, are in their order in both views', async () => {
      await create(1500);
      for (const [view, path] of [
        ['activations', 'guest'],
        ['activations-by-name', 'guest/hello'],
      ] as const) {
        expect(numbers(await listOf(view, path))).toEqual(down(1500, 1));
        expect(numbers(await listOf(view, path, { skip: 700, limit: 200 }))).toEqual(down(800, 601));
        expect(numbers(await listOf(view, path, { skip: 1200, limit: 200 }))).toEqual(down(300, 101));
        expect(await listOf(view, path, { skip: 1500, limit: 200 })).toEqual([]);
        const ascending = await listOf(view, path, { descending: false, skip: 1100, limit: 3 });
        expect(numbers(ascending)).toEqual([1101, 1102, 1103]);
        expect(await held.store.count('activations', { ...newestFirst(view, path), reader: 'guest' })).toBe(1500);
      }
    });

    test('of one record are its parts, and of none are refused', async () => {
      await create(1, { logs: ['x'.repeat(100_000)] });
      const { _id: id } = activation(1, 1);
      const text = async (as: 'logs' | 'result'): Promise<unknown> =>
        JSON.parse(Buffer.from(await held.store.text('activations', id, as, 'guest')).toString('utf8'));
      expect(await text('logs')).toEqual({ logs: ['x'.repeat(100_000)] });
      expect(await text('result')).toMatchObject({ status: 'success', result: { greeting: 'hello' } });
      await expect(held.store.text('activations', 'guest/none', 'logs', 'guest')).rejects.toThrow('no document');
    });
  });
}
