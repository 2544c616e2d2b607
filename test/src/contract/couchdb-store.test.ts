import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { testArtifactStore } from './artifact-store.js';
import { hasCouchdb, startCouchdb } from './couchdb-server.js';
import type { CouchdbServer } from './couchdb-server.js';

const timeoutMs = 20_000;

(hasCouchdb ? describe : describe.skip)('CouchDB', () => {
  let server: CouchdbServer;
  let count = 0;

  beforeAll(async () => {
    server = await startCouchdb({ prefixes: ['contract'] });
  });

  afterAll(() => server.stop());

  const open = (prefix: string) =>
    openCouchdbStore({ url: server.url, prefix, timeoutMs, clock: systemClock, sizesEveryMs: 100 });

  testArtifactStore('the CouchDB store', async () => {
    const prefix = `contract${++count}_`;
    return {
      open: () => open(prefix),
      // PouchDB orders ids by UTF-16 units and ends its list at U+FFFF; CouchDB orders ids by bytes.
      listsAstralIds: !server.isOwn,
      remove: async () => {
        for (const name of ['subjects', 'whisks', 'activations', 'gpu']) {
          await server.request('DELETE', `${prefix}${name}`);
        }
      },
    };
  });

  const removeDatabases = (prefix: string) =>
    Promise.all(['subjects', 'whisks', 'activations', 'gpu'].map((name) => server.request('DELETE', prefix + name)));

  test("blocked namespaces are read by OpenWhisk's own view of them, which has a reduce function", async () => {
    await server.request('PUT', 'contract_ow_subjects');
    const map = 'function (doc) { if (doc.blocked) emit(doc.subject, 1); }';
    const views = { blockedNamespaces: { map, reduce: '_sum' } };
    await server.request('PUT', 'contract_ow_subjects/_design/namespaceThrottlings', { language: 'javascript', views });
    const store = await open('contract_ow_');
    await store.createMany(
      'subjects',
      ['alice', 'bob'].map((subject) => ({ _id: subject, subject, blocked: true })),
    );
    const everything = { view: 'blocked-namespaces', startKey: [], endKey: ['\uffff'] } as const;
    expect((await store.query('subjects', everything)).map(({ key }) => key)).toEqual([['alice'], ['bob']]);
    await store.close();
    await removeDatabases('contract_ow_');
  });

  test('several that are opened on an empty server at once make its databases once', async () => {
    for (let round = 0; round < 3; round++) {
      const stores = await Promise.all(Array.from({ length: 6 }, () => open('contract_many_')));
      const [first] = stores;
      await first?.createMany('activations', [{ _id: 'guest/a' }]);
      for (const store of stores) expect((await store.get('activations', 'guest/a'))._id).toBe('guest/a');
      await Promise.all(stores.map((store) => store.close()));
      await removeDatabases('contract_many_');
    }
  });
});

test('a server that is not there is refused by name, without its password', async () => {
  const url = 'http://whisk:secret@127.0.0.1:9';
  const opened = openCouchdbStore({ url, prefix: 'whisk_', timeoutMs, clock: systemClock });
  await expect(opened).rejects.toBeInstanceOf(StoreOpenError);
  await expect(opened).rejects.toThrow('CouchDB at http://127.0.0.1:9 cannot be used');
});
