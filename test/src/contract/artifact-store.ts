import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ArtifactStore, StoredDocument, ViewQuery } from '@gpuwhisk/common/store/artifact-store';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';

/** A place where stores of the kind under test live. */
export interface StoreHome {
  /** Opens the store that lies there; what an earlier one, closed since, held is in it. */
  open(): Promise<ArtifactStore>;
  /** Removes the place. */
  remove(): Promise<void>;
}

function action(name: string, updated: number, more: Partial<StoredDocument> = {}): StoredDocument {
  return {
    _id: `guest/${name}`,
    entityType: 'action',
    namespace: 'guest',
    name,
    version: '0.0.1',
    publish: false,
    annotations: [],
    parameters: [],
    limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
    exec: { kind: 'nodejs:20', code: 'x', binary: false },
    updated,
    ...more,
  };
}

function activation(number: number, start: number, more: Partial<StoredDocument> = {}): StoredDocument {
  const activationId = number.toString(16).padStart(32, '0');
  return {
    _id: `guest/${activationId}`,
    entityType: 'activation',
    namespace: 'guest',
    name: 'hello',
    version: '0.0.1',
    subject: 'guest',
    activationId,
    start,
    end: start + 5,
    duration: 5,
    response: { statusCode: 0, result: { greeting: 'hello' } },
    logs: ['a line'],
    publish: false,
    annotations: [{ key: 'path', value: 'guest/hello' }],
    ...more,
  };
}

const newestFirst = (view: ViewQuery['view'], path: string, more: Partial<ViewQuery> = {}): ViewQuery => ({
  view,
  startKey: [path, 0],
  endKey: [path, '\ufff0', '\ufff0'],
  descending: true,
  ...more,
});

/** Registers the cases that every ArtifactStore must pass. */
export function testArtifactStore(name: string, makeHome: () => Promise<StoreHome>): void {
  describe(`${name} keeps the ArtifactStore contract`, () => {
    let home: StoreHome;
    let store: ArtifactStore;

    beforeEach(async () => {
      home = await makeHome();
      store = await home.open();
    });

    afterEach(async () => {
      await store.close();
      await home.remove();
    });

    const names = async (query: ViewQuery): Promise<unknown[]> =>
      (await store.query(query.view.startsWith('activations') ? 'activations' : 'whisks', query)).map((row) => row.id);

    describe('documents', () => {
      test('a new document gets revision 1-..., and is read back with it', async () => {
        const revision = await store.put('whisks', action('hello', 1));
        expect(revision).toMatch(/^1-[0-9a-f]{32}$/);
        expect(await store.get('whisks', 'guest/hello')).toEqual({ ...action('hello', 1), _rev: revision });
      });

      test('a replacement needs the stored revision and counts on', async () => {
        const first = await store.put('whisks', action('hello', 1));
        const second = await store.put('whisks', { ...action('hello', 2), _rev: first });
        expect(second).toMatch(/^2-/);
        expect((await store.get('whisks', 'guest/hello')).updated).toBe(2);
      });

      test.each([
        ['a stale revision', '1-00000000000000000000000000000000'],
        ['no revision', undefined],
      ])('a replacement with %s is refused', async (_, revision) => {
        await store.put('whisks', action('hello', 1));
        const attempt = revision === undefined ? action('hello', 2) : { ...action('hello', 2), _rev: revision };
        await expect(store.put('whisks', attempt)).rejects.toBeInstanceOf(DocumentConflictError);
        expect((await store.get('whisks', 'guest/hello')).updated).toBe(1);
      });

      test('a revision for a document that is not there is refused', async () => {
        const attempt = { ...action('hello', 1), _rev: '1-00000000000000000000000000000000' };
        await expect(store.put('whisks', attempt)).rejects.toBeInstanceOf(DocumentConflictError);
      });

      test('of two creations at once one wins', async () => {
        const results = await Promise.allSettled([
          store.put('whisks', action('hello', 1)),
          store.put('whisks', action('hello', 2)),
        ]);
        expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
      });

      test('of many replacements of one revision at once one wins', async () => {
        const first = await store.put('whisks', action('hello', 0));
        const attempts = Array.from({ length: 10 }, (_, i) =>
          store.put('whisks', { ...action('hello', i), _rev: first }),
        );
        const results = await Promise.allSettled(attempts);
        expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
        expect((await store.get('whisks', 'guest/hello'))._rev).toMatch(/^2-/);
      });

      test('a document that is not there cannot be read or deleted', async () => {
        await expect(store.get('whisks', 'guest/none')).rejects.toBeInstanceOf(NoDocumentError);
        await expect(store.delete('whisks', 'guest/none', '1-0')).rejects.toBeInstanceOf(NoDocumentError);
      });

      test('deleting needs the stored revision, and frees the id', async () => {
        const revision = await store.put('whisks', action('hello', 1));
        await expect(store.delete('whisks', 'guest/hello', '1-0')).rejects.toBeInstanceOf(DocumentConflictError);
        await store.delete('whisks', 'guest/hello', revision);
        await expect(store.get('whisks', 'guest/hello')).rejects.toBeInstanceOf(NoDocumentError);
        await store.put('whisks', action('hello', 2));
        expect((await store.get('whisks', 'guest/hello')).updated).toBe(2);
      });

      test('databases are apart', async () => {
        await store.put('whisks', action('hello', 1));
        await expect(store.get('activations', 'guest/hello')).rejects.toBeInstanceOf(NoDocumentError);
      });

      test.each([
        ['spaces and slashes', 'guest/my package/a b.c@d'],
        ['letters beyond ASCII', 'gäst/世界/😀'],
        ['700 characters', `guest/${'p'.repeat(256)}/${'n'.repeat(256)}${'x'.repeat(180)}`],
      ])('ids may have %s', async (_, id) => {
        await store.put('whisks', { _id: id, text: 'ünïcödé 😀 \u0000 \u2028' });
        expect((await store.get('whisks', id)).text).toBe('ünïcödé 😀 \u0000 \u2028');
      });

      test('a document may have a megabyte', async () => {
        const code = 'é'.repeat(500_000);
        await store.put('whisks', action('large', 1, { exec: { kind: 'nodejs:20', code, binary: false } }));
        expect((await store.get('whisks', 'guest/large')).exec).toEqual({ kind: 'nodejs:20', code, binary: false });
      });

      test('a document that was read belongs to the reader', async () => {
        await store.put('whisks', action('hello', 1));
        const mine = await store.get('whisks', 'guest/hello');
        mine.updated = 99;
        expect((await store.get('whisks', 'guest/hello')).updated).toBe(1);
      });
    });

    describe('createMany', () => {
      test('stores many and says so; again, it leaves them as they are', async () => {
        const batch = Array.from({ length: 250 }, (_, i) => activation(i, 1000 + i));
        expect(await store.createMany('activations', batch)).toEqual(batch.map(() => true));
        const again = [activation(0, 7777), activation(900, 2000)];
        expect(await store.createMany('activations', again)).toEqual([false, true]);
        expect((await store.get('activations', activation(0, 0)._id)).start).toBe(1000);
        expect(await store.count('activations', newestFirst('activations', 'guest'))).toBe(251);
      });

      test('documents come back as they were, however they are read, also strange ones', async () => {
        const whole = activation(1, 1, { cause: 'c'.repeat(32), more: { annotations: null } });
        const trigger = activation(2, 2, { end: 0, duration: undefined, annotations: [] });
        const strange = { _id: 'guest/strange', entityType: 'activation', namespace: 'guest', name: 'a', start: 'x' };
        const nameless = { _id: 'guest/nameless', namespace: 'guest', start: 3, annotations: [1] };
        const given = [whole, trigger, strange, nameless];
        await store.createMany('activations', given);
        const expected = given.map((document) => JSON.parse(JSON.stringify(document)) as StoredDocument);
        for (const document of expected) expect(await store.get('activations', document._id)).toMatchObject(document);
        const listed = await store.list('activations', { limit: 10 });
        expect(new Set(listed.map(({ _id, name }) => `${_id} ${String(name)}`))).toEqual(
          new Set(expected.map(({ _id, name }) => `${_id} ${String(name)}`)),
        );
        const rows = await store.query('activations', { ...newestFirst('activations', 'guest'), includeDocs: true });
        expect(rows.map(({ doc }) => doc)).toMatchObject([expected[1], expected[0]]);
        const changed = { ...(await store.get('activations', whole._id)), name: 'renamed' };
        await store.put('activations', changed);
        expect(await store.get('activations', whole._id)).toMatchObject({ ...expected[0], name: 'renamed' });
        expect(Object.keys(await store.get('activations', whole._id)).sort()).toEqual(
          [...Object.keys(expected[0] as StoredDocument), '_rev'].sort(),
        );
      });

      test('of two batches at once with one document in both, one creates it', async () => {
        const [one, other] = await Promise.all([
          store.createMany('activations', [activation(1, 1), activation(2, 2)]),
          store.createMany('activations', [activation(2, 22), activation(3, 3)]),
        ]);
        expect([one?.[0], other?.[1]]).toEqual([true, true]);
        expect([one?.[1], other?.[0]].filter(Boolean)).toHaveLength(1);
        expect(await store.count('activations', newestFirst('activations', 'guest'))).toBe(3);
      });

      test('a document twice in one batch is created once', async () => {
        expect(await store.createMany('activations', [activation(1, 1), activation(1, 2)])).toEqual([true, false]);
        expect((await store.get('activations', activation(1, 0)._id)).start).toBe(1);
      });

      test('a put of the same id at the same time sees it', async () => {
        const results = await Promise.allSettled([
          store.createMany('activations', [activation(1, 1)]),
          store.put('activations', activation(1, 2)),
        ]);
        const created = results[0]?.status === 'fulfilled' && (results[0].value as boolean[])[0] === true;
        expect(created).not.toBe(results[1]?.status === 'fulfilled');
      });

      test('none is none', async () => {
        expect(await store.createMany('activations', [])).toEqual([]);
      });
    });

    describe('views', () => {
      beforeEach(async () => {
        for (let i = 1; i <= 5; i++) await store.put('whisks', action(`a${i}`, i * 100));
      });

      test('rows come newest first, with list rows as values', async () => {
        const rows = await store.query('whisks', newestFirst('actions', 'guest'));
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
        expect(await names({ view: 'actions', startKey: ['guest', 0], endKey: ['guest', 300] })).toEqual([
          'guest/a1',
          'guest/a2',
          'guest/a3',
        ]);
      });

      test('skip and limit apply in the direction of reading', async () => {
        expect(await names(newestFirst('actions', 'guest', { skip: 1, limit: 2 }))).toEqual(['guest/a4', 'guest/a3']);
        expect(await names(newestFirst('actions', 'guest', { skip: 4, limit: 200 }))).toEqual(['guest/a1']);
        expect(await names(newestFirst('actions', 'guest', { skip: 9 }))).toEqual([]);
        expect(await names(newestFirst('actions', 'guest', { limit: 0 }))).toEqual([]);
      });

      test('both ends of a range belong to it', async () => {
        const range = { startKey: ['guest', 200], endKey: ['guest', 400] };
        expect(await names({ view: 'actions', descending: true, ...range })).toEqual([
          'guest/a4',
          'guest/a3',
          'guest/a2',
        ]);
        expect(await store.count('whisks', { view: 'actions', ...range })).toBe(3);
      });

      test('count ignores skip and limit, and other namespaces', async () => {
        await store.put('whisks', action('b', 1, { _id: 'guest2/b', namespace: 'guest2' }));
        expect(await store.count('whisks', newestFirst('actions', 'guest', { skip: 2, limit: 1 }))).toBe(5);
        expect(await store.count('whisks', newestFirst('actions', 'gues'))).toBe(0);
      });

      test('a replacement moves the row, a deletion removes it', async () => {
        const before = await store.get('whisks', 'guest/a1');
        const revision = await store.put('whisks', { ...before, updated: 900, publish: true });
        expect(await names(newestFirst('actions', 'guest'))).toEqual([
          'guest/a1',
          'guest/a5',
          'guest/a4',
          'guest/a3',
          'guest/a2',
        ]);
        await store.delete('whisks', 'guest/a1', revision);
        expect(await store.count('whisks', newestFirst('actions', 'guest'))).toBe(4);
      });

      test('rows of one key are told apart by their ids', async () => {
        await store.put('whisks', action('z', 500));
        expect(await names(newestFirst('actions', 'guest', { limit: 2 }))).toEqual(['guest/z', 'guest/a5']);
      });

      test('includeDocs brings the documents', async () => {
        const [row] = await store.query('whisks', newestFirst('actions', 'guest', { limit: 1, includeDocs: true }));
        expect(row?.doc).toEqual(await store.get('whisks', 'guest/a5'));
      });

      test('strings come after numbers, fractions and negative numbers in their order', async () => {
        for (const [i, start] of [5, -3, 0.5, 1e15, -0.25].entries()) {
          await store.createMany('activations', [activation(i, start)]);
        }
        const rows = await store.query('activations', {
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
          return store.put('whisks', { _id: id, namespace, name: rest.join('/'), ...common, ...more });
        };
        await entity('guest/pkg', { binding: {}, parameters: [] });
        await entity('guest/hidden', { binding: {}, parameters: [], publish: false });
        await entity('guest/bound', { binding: { namespace: 'other', name: 'pkg' }, parameters: [] });
        await entity('guest/trigger', { parameters: [], limits: {} });
        await entity('guest/rule', { trigger: { path: 'guest', name: 't' }, action: { path: 'guest', name: 'a' } });
        await store.put('whisks', action('inner', 1000, { _id: 'guest/pkg/inner', namespace: 'guest/pkg' }));

        expect((await names(newestFirst('packages', 'guest'))).sort()).toEqual([
          'guest/bound',
          'guest/hidden',
          'guest/pkg',
        ]);
        expect(await names(newestFirst('packages-public', 'guest'))).toEqual(['guest/pkg']);
        expect(await names(newestFirst('triggers', 'guest'))).toEqual(['guest/trigger']);
        expect(await names(newestFirst('rules', 'guest'))).toEqual(['guest/rule']);
        expect(await names(newestFirst('actions', 'guest/pkg'))).toEqual(['guest/pkg/inner']);
        expect(await names(newestFirst('actions', 'guest', { limit: 1 }))).toEqual(['guest/pkg/inner']);
        const bindings = await store.query('whisks', newestFirst('packages', 'guest'));
        expect(bindings.map((row) => (row.value as { binding: unknown }).binding)).toEqual(
          expect.arrayContaining([false, { namespace: 'other', name: 'pkg' }]),
        );
      });

      test('activations are listed as summaries, and by name', async () => {
        await store.createMany('activations', [
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
        const all = await store.query('activations', newestFirst('activations', 'guest'));
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
          (await store.query('activations', newestFirst('activations-by-name', path))).map(
            (row) => (row.value as { start: number }).start,
          );
        expect(await startsOf('guest/hello')).toEqual([10]);
        expect(await startsOf('guest/pkg/hello')).toEqual([20]);
        expect(await startsOf('guest/bound/hello')).toEqual([30]);
        expect(await startsOf('guest/fired')).toEqual([40]);
      });

      test('identities are found by namespace and by key, with their limits', async () => {
        const key = 'k'.repeat(64);
        await store.put('subjects', {
          _id: 'guest',
          subject: 'guest',
          namespaces: [{ name: 'guest', uuid: 'u-1', key }],
        });
        await store.put('subjects', { _id: 'guest/limits', invocationsPerMinute: 7 });
        await store.put('subjects', {
          _id: 'bad',
          subject: 'bad',
          blocked: true,
          namespaces: [{ name: 'bad', uuid: 'u-2', key }],
        });
        const find = (...viewKey: string[]): ReturnType<ArtifactStore['query']> =>
          store.query('subjects', { view: 'identities', startKey: viewKey, endKey: viewKey, includeDocs: true });
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

    describe('lists', () => {
      test('documents come by id, page by page', async () => {
        const ids = ['ä/x', 'guest', 'guest/limits', 'guest/z', 'a', '\u{1F600}', 'Z'];
        for (const id of ids) await store.put('subjects', { _id: id, mark: id });
        await store.put('whisks', { _id: 'guest/other' });
        const sorted = [...ids].sort((one, other) => Buffer.from(one).compare(Buffer.from(other)));
        const all = await store.list('subjects', { limit: 100 });
        expect(all.map(({ _id, mark }) => [_id, mark])).toEqual(sorted.map((id) => [id, id]));
        expect(all[0]?._rev).toBe((await store.get('subjects', sorted[0] as string))._rev);
        expect((await store.list('subjects', { limit: 2 })).map(({ _id }) => _id)).toEqual(sorted.slice(0, 2));
        for (const after of [sorted[1] as string, `${sorted[1]}!`]) {
          const page = await store.list('subjects', { after, limit: 3 });
          expect(page.map(({ _id }) => _id)).toEqual(sorted.slice(2, 5));
        }
        expect(await store.list('subjects', { after: sorted.at(-1) as string, limit: 3 })).toEqual([]);
        expect(await store.list('activations', { limit: 3 })).toEqual([]);
        expect(await store.list('subjects', { limit: 0 })).toEqual([]);
      });

      test('namespaces are blocked by their limits or with their subject', async () => {
        const subject = (id: string, names: string[], more: Partial<StoredDocument> = {}): StoredDocument => ({
          _id: id,
          subject: id,
          namespaces: names.map((name) => ({ name, uuid: `u-${name}`, key: 'k' })),
          ...more,
        });
        await store.put('subjects', subject('free', ['one'], { blocked: false }));
        await store.put('subjects', subject('bad', ['two', 'three'], { blocked: true }));
        await store.put('subjects', { _id: 'four/limits', invocationsPerMinute: 0 });
        const rev = await store.put('subjects', { _id: 'five/limits', concurrentInvocations: 0 });
        await store.put('subjects', { _id: 'six/limits', invocationsPerMinute: 1, firesPerMinute: 0 });
        const blocked = async (): Promise<unknown[]> =>
          (await store.query('subjects', { view: 'blocked-namespaces', startKey: [], endKey: ['\ufff0'] })).map(
            ({ key }) => key[0],
          );
        expect(await blocked()).toEqual(['five', 'four', 'three', 'two']);
        await store.delete('subjects', 'five/limits', rev);
        expect(await blocked()).toEqual(['four', 'three', 'two']);
      });
    });

    describe('attachments', () => {
      const bytes = (length: number, seed: number): Uint8Array =>
        Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff);

      test.each([0, 1, 100_000, 5_000_000])('%d bytes are read back, with their type', async (length) => {
        await store.putAttachment('whisks', 'guest/my pkg/a', 'couch:1', 'text/plain; charset=UTF-8', bytes(length, 1));
        const read = await store.getAttachment('whisks', 'guest/my pkg/a', 'couch:1');
        expect(read.contentType).toBe('text/plain; charset=UTF-8');
        expect(Buffer.compare(read.bytes, bytes(length, 1))).toBe(0);
      });

      test('a shorter attachment replaces a longer one', async () => {
        await store.putAttachment('whisks', 'guest/a', 'x', 'a/b', bytes(3_000_000, 1));
        await store.putAttachment('whisks', 'guest/a', 'x', 'c/d', bytes(10, 2));
        const read = await store.getAttachment('whisks', 'guest/a', 'x');
        expect(read.contentType).toBe('c/d');
        expect(Buffer.compare(read.bytes, bytes(10, 2))).toBe(0);
      });

      test('all but one can be deleted, and all go with the document', async () => {
        const revision = await store.put('whisks', action('a', 1));
        for (const name of ['x', 'y', 'z']) await store.putAttachment('whisks', 'guest/a', name, 'a/b', bytes(9, 1));
        await store.putAttachment('whisks', 'guest/ab', 'x', 'a/b', bytes(9, 1));
        await store.deleteAttachments('whisks', 'guest/a', 'y');
        await expect(store.getAttachment('whisks', 'guest/a', 'x')).rejects.toBeInstanceOf(NoDocumentError);
        expect((await store.getAttachment('whisks', 'guest/a', 'y')).bytes).toHaveLength(9);
        const replaced = await store.put('whisks', { ...action('a', 2), _rev: revision });
        expect((await store.getAttachment('whisks', 'guest/a', 'y')).bytes).toHaveLength(9);
        await store.delete('whisks', 'guest/a', replaced);
        await expect(store.getAttachment('whisks', 'guest/a', 'y')).rejects.toBeInstanceOf(NoDocumentError);
        expect((await store.getAttachment('whisks', 'guest/ab', 'x')).bytes).toHaveLength(9);
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
        const rows = await store.query('gpu', { view: 'apis', startKey: key, endKey: key, includeDocs: true });
        return rows.map((row) => row.doc?.basePath);
      };

      test('APIs are found by namespace and by tenant, in order of their ids', async () => {
        await store.put('gpu', api('guest', '/b'));
        await store.put('gpu', api('guest', '/a'));
        await store.put('gpu', api('other', '/c'));
        await store.put('gpu', { _id: 'something else', namespace: 'guest', tenant: 'guest-uuid' });
        expect(await apis('namespace', 'guest')).toEqual(['/a', '/b']);
        expect(await apis('tenant', 'guest-uuid')).toEqual(['/a', '/b']);
        expect(await apis('namespace', 'guest-uuid')).toEqual([]);
      });

      test("its documents are apart from OpenWhisk's", async () => {
        await store.put('gpu', api('guest', '/a'));
        await expect(store.get('whisks', 'api/guest/a')).rejects.toBeInstanceOf(NoDocumentError);
        expect(await store.put('whisks', action('hello', 1))).toMatch(/^1-/);
      });
    });

    describe('closing', () => {
      test('everything is there after opening again', async () => {
        const revision = await store.put('whisks', action('hello', 1));
        await store.createMany('activations', [activation(1, 1), activation(2, 2)]);
        await store.putAttachment('whisks', 'guest/hello', 'x', 'a/b', Buffer.from('code'));
        await store.close();
        store = await home.open();
        expect((await store.get('whisks', 'guest/hello'))._rev).toBe(revision);
        expect(await names(newestFirst('activations', 'guest'))).toEqual([activation(2, 2)._id, activation(1, 1)._id]);
        expect(Buffer.from((await store.getAttachment('whisks', 'guest/hello', 'x')).bytes).toString()).toBe('code');
      });

      test('a write that was under way is finished or fails', async () => {
        const write = store.put('whisks', action('hello', 1)).then(
          () => true,
          () => false,
        );
        await store.close();
        const written = await write;
        store = await home.open();
        const found = await store.get('whisks', 'guest/hello').then(
          () => true,
          () => false,
        );
        expect(found || !written).toBe(true);
      });

      test('a closed store refuses; closing twice is once', async () => {
        await store.close();
        await store.close();
        await expect(store.put('whisks', action('hello', 1))).rejects.toThrow('closed');
        await expect(store.get('whisks', 'guest/hello')).rejects.toThrow('closed');
        await expect(store.query('whisks', newestFirst('actions', 'guest'))).rejects.toThrow('closed');
      });
    });
  });
}
