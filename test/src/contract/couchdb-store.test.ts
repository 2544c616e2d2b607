import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { StoreOpenError } from '@gpuwhisk/common/store/store-error';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { testArtifactStore } from './artifact-store.js';
import { hasCouchdb, startCouchdb } from './couchdb-server.js';
import type { CouchdbServer } from './couchdb-server.js';

const timeoutMs = 20_000;

(hasCouchdb ? describe : describe.skip)('CouchDB', () => {
  let server: CouchdbServer;
  let count = 0;

  beforeAll(async () => {
    server = await startCouchdb();
  });

  afterAll(() => server.stop());

  const open = (prefix: string) => openCouchdbStore({ url: server.url, prefix, timeoutMs, clock: systemClock });

  testArtifactStore('the CouchDB store', async () => {
    const prefix = `t${++count}_`;
    return {
      open: () => open(prefix),
      // PouchDB orders by UTF-16 units, and ends its list at U+FFFF; CouchDB orders by bytes.
      listsAstralIds: false,
      remove: async () => {
        for (const name of ['subjects', 'whisks', 'activations', 'gpu']) {
          await fetch(`${server.url}/${prefix}${name}`, { method: 'DELETE' });
        }
      },
    };
  });
});

test('a server that is not there is refused by name, without its password', async () => {
  const url = 'http://whisk:secret@127.0.0.1:9';
  const opened = openCouchdbStore({ url, prefix: 'whisk_', timeoutMs, clock: systemClock });
  await expect(opened).rejects.toBeInstanceOf(StoreOpenError);
  await expect(opened).rejects.toThrow('CouchDB at http://127.0.0.1:9 cannot be used');
});
