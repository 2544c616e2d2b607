import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ArtifactStore, StoredDocument, ViewRow } from '@gpuwhisk/common/store/artifact-store';
import { action, activation, idsIn, newestFirst } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for views: OpenWhisk's lists, and the owners of keys. */
export function testViews(held: StoreUnderTest): void {
  describe('views', () => {
    beforeEach(async () => {
      for (let i = 1; i <= 5; i++) await held.store.put('whisks', action(`a${i}`, i * 100));
    });

    test('rows come newest first, with list rows as values', async () => {
      const rows = await held.store.query('whisks', newestFirst('actions', 'guest'));
      expect(rows.map((row) => row.id)).toEqual(['guest/a5', 'guest/a4', 'guest/a3', 'guest/a2', 'guest/a1']);
      expect(rows[0]).toEqual({
        id: 'guest/a5',
        key: ['guest', 500],
        value: {
          namespace: 'guest',
          name: 'a5',
          version: '0.0.1',
          publish: false,
          annotations: [],
          limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
          exec: { binary: false },
          updated: 500,
        },
      });
    });

    test('rows come oldest first unless asked otherwise', async () => {
      expect(await idsIn(held.store, { view: 'actions', startKey: ['guest', 0], endKey: ['guest', 300] })).toEqual([
        'guest/a1',
        'guest/a2',
        'guest/a3',
      ]);
    });

    test('skip and limit apply in the direction of reading', async () => {
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { skip: 1, limit: 2 }))).toEqual([
        'guest/a4',
        'guest/a3',
      ]);
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { skip: 4, limit: 200 }))).toEqual(['guest/a1']);
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { skip: 9 }))).toEqual([]);
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { limit: 0 }))).toEqual([]);
    });

    test('both ends of a range belong to it', async () => {
      const range = { startKey: ['guest', 200], endKey: ['guest', 400] };
      expect(await idsIn(held.store, { view: 'actions', descending: true, ...range })).toEqual([
        'guest/a4',
        'guest/a3',
        'guest/a2',
      ]);
      expect(await held.store.count('whisks', { view: 'actions', ...range })).toBe(3);
    });

    test('count ignores skip and limit, and other namespaces', async () => {
      await held.store.put('whisks', action('b', 1, { _id: 'guest2/b', namespace: 'guest2' }));
      expect(await held.store.count('whisks', newestFirst('actions', 'guest', { skip: 2, limit: 1 }))).toBe(5);
      expect(await held.store.count('whisks', newestFirst('actions', 'gues'))).toBe(0);
    });

    test('a replacement moves the row, a deletion removes it', async () => {
      const before = await held.store.get('whisks', 'guest/a1');
      const revision = await held.store.put('whisks', { ...before, updated: 900, publish: true });
      expect(await idsIn(held.store, newestFirst('actions', 'guest'))).toEqual([
        'guest/a1',
        'guest/a5',
        'guest/a4',
        'guest/a3',
        'guest/a2',
      ]);
      await held.store.delete('whisks', 'guest/a1', revision);
      expect(await held.store.count('whisks', newestFirst('actions', 'guest'))).toBe(4);
    });

    test('rows of one key are told apart by their ids', async () => {
      await held.store.put('whisks', action('z', 500));
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { limit: 2 }))).toEqual(['guest/z', 'guest/a5']);
    });

    test('includeDocs brings the documents', async () => {
      const [row] = await held.store.query('whisks', newestFirst('actions', 'guest', { limit: 1, includeDocs: true }));
      expect(row?.doc).toEqual(await held.store.get('whisks', 'guest/a5'));
    });

    test('strings come after numbers, fractions and negative numbers in their order', async () => {
      for (const [i, start] of [5, -3, 0.5, 1e15, -0.25].entries()) {
        await held.store.createMany('activations', [activation(i, start)]);
      }
      const rows = await held.store.query('activations', {
        view: 'activations',
        startKey: ['guest', -1e9],
        endKey: ['guest', ''],
      });
      expect(rows.map((row) => row.key[1])).toEqual([-3, -0.25, 0.5, 5, 1e15]);
    });

    test('packages, bindings, triggers and rules are in views of their own', async () => {
      const entity = (id: string, more: Partial<StoredDocument>): Promise<string> => {
        const [namespace = '', ...rest] = id.split('/');
        const common = { version: '0.0.1', publish: true, annotations: [], updated: 1 };
        return held.store.put('whisks', { _id: id, namespace, name: rest.join('/'), ...common, ...more });
      };
      await entity('guest/pkg', { binding: {}, parameters: [] });
      await entity('guest/hidden', { binding: {}, parameters: [], publish: false });
      await entity('guest/bound', { binding: { namespace: 'other', name: 'pkg' }, parameters: [] });
      await entity('guest/trigger', { parameters: [], limits: {} });
      await entity('guest/rule', { trigger: { path: 'guest', name: 't' }, action: { path: 'guest', name: 'a' } });
      await held.store.put('whisks', action('inner', 1000, { _id: 'guest/pkg/inner', namespace: 'guest/pkg' }));

      expect((await idsIn(held.store, newestFirst('packages', 'guest'))).sort()).toEqual([
        'guest/bound',
        'guest/hidden',
        'guest/pkg',
      ]);
      expect(await idsIn(held.store, newestFirst('packages-public', 'guest'))).toEqual(['guest/pkg']);
      expect(await idsIn(held.store, newestFirst('triggers', 'guest'))).toEqual(['guest/trigger']);
      expect(await idsIn(held.store, newestFirst('rules', 'guest'))).toEqual(['guest/rule']);
      expect(await idsIn(held.store, newestFirst('actions', 'guest/pkg'))).toEqual(['guest/pkg/inner']);
      expect(await idsIn(held.store, newestFirst('actions', 'guest', { limit: 1 }))).toEqual(['guest/pkg/inner']);
      const bindings = await held.store.query('whisks', newestFirst('packages', 'guest'));
      expect(bindings.map((row) => (row.value as { binding: unknown }).binding)).toEqual(
        expect.arrayContaining([false, { namespace: 'other', name: 'pkg' }]),
      );
    });

    test('activations are listed as summaries, and by name', async () => {
      await held.store.createMany('activations', [
        activation(1, 10),
        activation(2, 20, { annotations: [{ key: 'path', value: 'other/pkg/hello' }] }),
        activation(3, 30, {
          annotations: [
            { key: 'path', value: 'other/pkg/hello' },
            { key: 'binding', value: 'guest/bound' },
          ],
        }),
        activation(4, 40, { name: 'fired', end: 0, cause: 'c' }),
      ]);
      const all = await held.store.query('activations', newestFirst('activations', 'guest'));
      expect(all.map((row) => (row.value as { start: number }).start)).toEqual([40, 30, 20, 10]);
      expect(all[3]?.value).toEqual({
        namespace: 'guest',
        name: 'hello',
        version: '0.0.1',
        publish: false,
        annotations: [{ key: 'path', value: 'guest/hello' }],
        activationId: activation(1, 10).activationId,
        start: 10,
        end: 15,
        duration: 5,
        statusCode: 0,
      });
      expect(all[0]?.value).not.toHaveProperty('end');
      expect(all[0]?.value).not.toHaveProperty('duration');
      const startsOf = async (path: string): Promise<unknown[]> =>
        (await held.store.query('activations', newestFirst('activations-by-name', path))).map(
          (row) => (row.value as { start: number }).start,
        );
      expect(await startsOf('guest/hello')).toEqual([10]);
      expect(await startsOf('guest/pkg/hello')).toEqual([20]);
      expect(await startsOf('guest/bound/hello')).toEqual([30]);
      expect(await startsOf('guest/fired')).toEqual([40]);
    });

    test('activations of many names that were created in many batches are listed by name, and counted', async () => {
      const names = Array.from({ length: 7 }, (_, at) => `many${at}`);
      const total = 1500;
      for (let first = 0; first < total; first += 100) {
        const batch = Array.from({ length: 100 }, (_, at) => {
          const number = first + at;
          return activation(100_000 + number, 1000 + number, { name: names[number % 7] as string, annotations: [] });
        });
        await held.store.createMany('activations', batch);
      }
      const expected = (name: number): number[] =>
        Array.from({ length: total }, (_, at) => at)
          .filter((at) => at % 7 === name)
          .map((at) => 1000 + at);
      const startsOf = (rows: ViewRow[]): unknown[] => rows.map(({ value }) => (value as { start: number }).start);
      for (const [at, name] of names.entries()) {
        const newest = newestFirst('activations-by-name', `guest/${name}`);
        const all = await held.store.query('activations', newest);
        expect(startsOf(all)).toEqual(expected(at).reverse());
        const page = await held.store.query('activations', { ...newest, skip: 3, limit: 5 });
        expect(startsOf(page)).toEqual(expected(at).reverse().slice(3, 8));
        const { view } = newest;
        const range = { view, startKey: [`guest/${name}`, 1100], endKey: [`guest/${name}`, 1400] };
        const between = expected(at).filter((start) => start >= 1100 && start <= 1400);
        expect(startsOf(await held.store.query('activations', range))).toEqual(between);
        expect(await held.store.count('activations', range)).toBe(between.length);
      }
      const gone = activation(100_000 + total - 1, 1000 + total - 1)._id;
      const { _rev: revision } = await held.store.get('activations', gone);
      await held.store.delete('activations', gone, revision as string);
      const left = expected((total - 1) % 7).slice(0, -1);
      const rows = await held.store.query(
        'activations',
        newestFirst('activations-by-name', `guest/many${(total - 1) % 7}`),
      );
      expect(startsOf(rows)).toEqual(left.reverse());
    });

    test('identities are found by namespace and by key, with their limits', async () => {
      const key = 'k'.repeat(64);
      await held.store.put('subjects', {
        _id: 'guest',
        subject: 'guest',
        namespaces: [{ name: 'guest', uuid: 'u-1', key }],
      });
      await held.store.put('subjects', { _id: 'guest/limits', invocationsPerMinute: 7 });
      await held.store.put('subjects', {
        _id: 'bad',
        subject: 'bad',
        blocked: true,
        namespaces: [{ name: 'bad', uuid: 'u-2', key }],
      });
      const find = (...viewKey: string[]): ReturnType<ArtifactStore['query']> =>
        held.store.query('subjects', { view: 'identities', startKey: viewKey, endKey: viewKey, includeDocs: true });
      for (const viewKey of [['guest'], ['u-1', key]]) {
        const rows = await find(...viewKey);
        expect(rows).toHaveLength(1);
        expect(rows[0]?.value).toEqual({ _id: 'guest/limits', namespace: 'guest', uuid: 'u-1', key });
        expect(rows[0]?.doc?.invocationsPerMinute).toBe(7);
      }
      expect(await find('u-1')).toEqual([]);
      expect(await find('bad')).toEqual([]);
    });
  });
}
