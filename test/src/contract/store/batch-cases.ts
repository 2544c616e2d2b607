import { describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { action, activation, newestFirst } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for documents that are created in batches. */
export function testBatches(held: StoreUnderTest): void {
  describe('createMany', () => {
    test('stores many and says so; again, it leaves them as they are', async () => {
      const batch = Array.from({ length: 250 }, (_, i) => activation(i, 1000 + i));
      expect(await held.store.createMany('activations', batch)).toEqual(batch.map(() => true));
      const again = [activation(0, 7777), activation(900, 2000)];
      expect(await held.store.createMany('activations', again)).toEqual([false, true]);
      expect((await held.store.get('activations', activation(0, 0)._id)).start).toBe(1000);
      expect(await held.store.count('activations', newestFirst('activations', 'guest'))).toBe(251);
    });

    test('documents come back as they were, however they are read, also strange ones', async () => {
      const whole = activation(1, 1, { cause: 'c'.repeat(32), more: { annotations: null } });
      const trigger = activation(2, 2, { end: 0, duration: undefined, annotations: [] });
      const strange = { _id: 'guest/strange', entityType: 'activation', namespace: 'guest', name: 'a', start: 'x' };
      const nameless = { _id: 'guest/nameless', namespace: 'guest', start: 3, annotations: [1] };
      const given = [whole, trigger, strange, nameless];
      await held.store.createMany('activations', given);
      const expected = given.map((document) => JSON.parse(JSON.stringify(document)) as StoredDocument);
      for (const document of expected)
        expect(await held.store.get('activations', document._id)).toMatchObject(document);
      const listed = await held.store.list('activations', { limit: 10 });
      expect(new Set(listed.map(({ _id, name }) => `${_id} ${String(name)}`))).toEqual(
        new Set(expected.map(({ _id, name }) => `${_id} ${String(name)}`)),
      );
      const rows = await held.store.query('activations', { ...newestFirst('activations', 'guest'), includeDocs: true });
      expect(rows.map(({ doc }) => doc)).toMatchObject([expected[1], expected[0]]);
      const changed = { ...(await held.store.get('activations', whole._id)), name: 'renamed' };
      await held.store.put('activations', changed);
      expect(await held.store.get('activations', whole._id)).toMatchObject({ ...expected[0], name: 'renamed' });
      expect(Object.keys(await held.store.get('activations', whole._id)).sort()).toEqual(
        [...Object.keys(expected[0] as StoredDocument), '_rev'].sort(),
      );
    });

    test('halves of surrogate pairs are stored as U+FFFD, and nothing else changes', async () => {
      const bad = ['\ud800', 'a\udc00b', '\ud83d\ud83d\ude00'];
      const mended = ['\ufffd', 'a\ufffdb', '\ufffd\u{1f600}'];
      const others = ['\\ud800', '\\\\\\ud800', '\u{1f600}', '\0'];
      const of = (texts: string[]) => ({
        response: { statusCode: 0, result: { texts: [...texts, ...others], [texts[0] as string]: 1 } },
        annotations: [{ key: 'note', value: texts }],
      });
      await held.store.createMany('activations', [activation(1, 1, of(bad)), activation(2, 2)]);
      expect(await held.store.get('activations', activation(1, 1)._id)).toMatchObject(of(mended));
      const [, row] = await held.store.query('activations', newestFirst('activations', 'guest'));
      expect(row?.value).toMatchObject({ annotations: [{ key: 'note', value: mended }] });
      await held.store.put('whisks', action('hello', 1, { parameters: bad }));
      expect((await held.store.get('whisks', 'guest/hello')).parameters).toEqual(mended);
    });

    test('of two batches at once with one document in both, one creates it', async () => {
      const [one, other] = await Promise.all([
        held.store.createMany('activations', [activation(1, 1), activation(2, 2)]),
        held.store.createMany('activations', [activation(2, 22), activation(3, 3)]),
      ]);
      expect([one?.[0], other?.[1]]).toEqual([true, true]);
      expect([one?.[1], other?.[0]].filter(Boolean)).toHaveLength(1);
      expect(await held.store.count('activations', newestFirst('activations', 'guest'))).toBe(3);
    });

    test('a document twice in one batch is created once', async () => {
      expect(await held.store.createMany('activations', [activation(1, 1), activation(1, 2)])).toEqual([true, false]);
      expect((await held.store.get('activations', activation(1, 0)._id)).start).toBe(1);
    });

    test('a put of the same id at the same time sees it', async () => {
      const results = await Promise.allSettled([
        held.store.createMany('activations', [activation(1, 1)]),
        held.store.put('activations', activation(1, 2)),
      ]);
      const created = results[0]?.status === 'fulfilled' && (results[0].value as boolean[])[0] === true;
      expect(created).not.toBe(results[1]?.status === 'fulfilled');
    });

    test('none is none', async () => {
      expect(await held.store.createMany('activations', [])).toEqual([]);
    });
  });
}
