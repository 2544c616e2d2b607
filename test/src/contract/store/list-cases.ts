import { describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { action } from './documents.js';
import type { StoreUnderTest } from './documents.js';

/** Registers the cases for lists of whole databases and for views of blocked namespaces and of APIs. */
export function testLists(held: StoreUnderTest): void {
  describe('lists', () => {
    test('documents come by id, page by page', async () => {
      const ids = ['ä/x', 'guest', 'guest/limits', 'guest/z', 'a', 'Z'];
      if (held.home.listsAstralIds !== false) ids.push('\u{1F600}');
      for (const id of ids) await held.store.put('subjects', { _id: id, mark: id });
      await held.store.put('whisks', { _id: 'guest/other' });
      const sorted = [...ids].sort((one, other) => Buffer.from(one).compare(Buffer.from(other)));
      const all = await held.store.list('subjects', { limit: 100 });
      expect(all.map(({ _id, mark }) => [_id, mark])).toEqual(sorted.map((id) => [id, id]));
      expect(all[0]?._rev).toBe((await held.store.get('subjects', sorted[0] as string))._rev);
      expect((await held.store.list('subjects', { limit: 2 })).map(({ _id }) => _id)).toEqual(sorted.slice(0, 2));
      for (const after of [sorted[1] as string, `${sorted[1]}!`]) {
        const page = await held.store.list('subjects', { after, limit: 3 });
        expect(page.map(({ _id }) => _id)).toEqual(sorted.slice(2, 5));
      }
      expect(await held.store.list('subjects', { after: sorted.at(-1) as string, limit: 3 })).toEqual([]);
      expect(await held.store.list('activations', { limit: 3 })).toEqual([]);
      expect(await held.store.list('subjects', { limit: 0 })).toEqual([]);
    });

    test('namespaces are blocked by their limits or with their subject', async () => {
      const subject = (id: string, names: string[], more: Partial<StoredDocument> = {}): StoredDocument => ({
        _id: id,
        subject: id,
        namespaces: names.map((name) => ({ name, uuid: `u-${name}`, key: 'k' })),
        ...more,
      });
      await held.store.put('subjects', subject('free', ['one'], { blocked: false }));
      await held.store.put('subjects', subject('bad', ['two', 'three'], { blocked: true }));
      await held.store.put('subjects', { _id: 'four/limits', invocationsPerMinute: 0 });
      const rev = await held.store.put('subjects', { _id: 'five/limits', concurrentInvocations: 0 });
      await held.store.put('subjects', { _id: 'six/limits', invocationsPerMinute: 1, firesPerMinute: 0 });
      const blocked = async (): Promise<unknown[]> =>
        (await held.store.query('subjects', { view: 'blocked-namespaces', startKey: [], endKey: ['\ufff0'] })).map(
          ({ key }) => key[0],
        );
      expect(await blocked()).toEqual(['five', 'four', 'three', 'two']);
      await held.store.delete('subjects', 'five/limits', rev);
      expect(await blocked()).toEqual(['four', 'three', 'two']);
    });
  });
  describe('the database of our own', () => {
    const api = (namespace: string, basePath: string): StoredDocument => ({
      _id: `api/${namespace}${basePath}`,
      kind: 'api',
      namespace,
      tenant: `${namespace}-uuid`,
      basePath,
    });
    const apis = async (...key: [string, string]): Promise<unknown[]> => {
      const rows = await held.store.query('gpu', { view: 'apis', startKey: key, endKey: key, includeDocs: true });
      return rows.map((row) => row.doc?.basePath);
    };

    test('APIs are found by namespace and by tenant, in order of their ids', async () => {
      await held.store.put('gpu', api('guest', '/b'));
      await held.store.put('gpu', api('guest', '/a'));
      await held.store.put('gpu', api('other', '/c'));
      await held.store.put('gpu', { _id: 'something else', namespace: 'guest', tenant: 'guest-uuid' });
      expect(await apis('namespace', 'guest')).toEqual(['/a', '/b']);
      expect(await apis('tenant', 'guest-uuid')).toEqual(['/a', '/b']);
      expect(await apis('namespace', 'guest-uuid')).toEqual([]);
    });

    test("its documents are apart from OpenWhisk's", async () => {
      await held.store.put('gpu', api('guest', '/a'));
      await expect(held.store.get('whisks', 'api/guest/a')).rejects.toBeInstanceOf(NoDocumentError);
      expect(await held.store.put('whisks', action('hello', 1))).toMatch(/^1-/);
    });
  });
}
