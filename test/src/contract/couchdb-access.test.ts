// Rights of the invokers' account in CouchDB, which `gpuwhisk databases` creates.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ArtifactStore, DatabaseName } from '@gpuwhisk/common/store/artifact-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { hasCouchdb, startCouchdb } from './couchdb-server.js';
import type { CouchdbServer } from './couchdb-server.js';

const program = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
const testMs = 60_000;
const admin = { name: 'admin', password: 'secret' };
const all: readonly DatabaseName[] = ['subjects', 'whisks', 'activations', 'gpu'];

// Skipped for a server that is not the tests' own: the tests must not change its accounts.
(hasCouchdb && process.env.TEST_COUCHDB_URL === undefined ? describe : describe.skip)(
  "the invokers' account of CouchDB",
  () => {
    let server: CouchdbServer;
    let operator: ArtifactStore;
    let invoker: ArtifactStore;
    const urlOf = (user: string, password: string): string =>
      `http://${user}:${password}@127.0.0.1:${String(server.port)}`;
    const open = (user: string, password: string): Promise<ArtifactStore> =>
      openCouchdbStore({ url: urlOf(user, password), prefix: 'whisk_', timeoutMs: 10_000, clock: systemClock });
    const makeDatabases = async (password: string): Promise<string> => {
      const args = [program, 'databases', '--couchdb', urlOf(admin.name, admin.password), '--couchdb-prefix', 'whisk_'];
      const env = { ...process.env, NODE_OPTIONS: '', INVOKER_COUCHDB_PASSWORD: password };
      return (await promisify(execFile)(process.execPath, args, { env, timeout: testMs })).stdout;
    };
    const statusOf = async (method: string, path: string, body?: object): Promise<number> => {
      const authorization = `Basic ${Buffer.from('gpuwhisk-invoker:first').toString('base64')}`;
      const headers = { authorization, 'content-type': 'application/json' };
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      return (await fetch(`http://127.0.0.1:${String(server.port)}/whisk_${path}`, sent)).status;
    };

    beforeAll(async () => {
      server = await startCouchdb({ prefixes: ['whisk_'], admin });
      expect(await makeDatabases('first')).toContain('was made');
      operator = await open(admin.name, admin.password);
      await operator.put('subjects', {
        _id: 'blocked',
        subject: 'blocked',
        blocked: true,
        namespaces: [{ name: 'blocked' }],
      });
      await operator.put('whisks', { _id: 'ns/hello', namespace: 'ns', name: 'hello', exec: {}, updated: 1 });
      await operator.put('gpu', { _id: 'learned' });
      invoker = await open('gpuwhisk-invoker', 'first');
    }, testMs);
    afterAll(async () => {
      await invoker?.close();
      await operator?.close();
      await server?.stop();
    }, testMs);

    test('reads actions and blocked namespaces, and records each activation once', async () => {
      expect(await invoker.get('whisks', 'ns/hello')).toMatchObject({ name: 'hello' });
      const blocked = await invoker.query('subjects', { view: 'blocked-namespaces', startKey: [], endKey: ['\ufff0'] });
      expect(blocked.map(({ key }) => key)).toEqual([['blocked']]);
      const records = ['ns/1', 'ns/2'].map((_id) => ({ _id, namespace: 'ns' }));
      expect(await invoker.createMany('activations', records)).toEqual([true, true]);
      expect(await invoker.createMany('activations', [...records, { _id: 'ns/3' }])).toEqual([false, false, true]);
      expect(await invoker.get('activations', 'ns/1')).toMatchObject({ namespace: 'ns' });
    });

    test('changes and removes nothing else', async () => {
      const { _rev: whisk } = await operator.get('whisks', 'ns/hello');
      const { _rev: record } = await operator.get('activations', 'ns/1').catch(() => ({ _rev: '1-0' }));
      const refused = /An invoker (reads here|stores records)/;
      for (const [database, id, revision] of [
        ['whisks', 'ns/hello', whisk],
        ['whisks', 'ns/new', undefined],
        ['subjects', 'mallory', undefined],
        ['activations', 'ns/1', record],
      ] as const) {
        const document = { _id: id, ...(revision !== undefined && { _rev: String(revision) }), mine: true };
        await expect(invoker.put(database, document)).rejects.toThrow(refused);
        if (revision !== undefined)
          await expect(invoker.delete(database, id, String(revision))).rejects.toThrow(refused);
      }
      await expect(invoker.createMany('subjects', [{ _id: 'mallory' }])).rejects.toThrow(refused);
      const replicated = { new_edits: false, docs: [{ _id: 'ns/1', _rev: '9-abc', mine: true }] };
      await statusOf('POST', 'activations/_bulk_docs', replicated);
      expect(await operator.get('activations', 'ns/1')).not.toHaveProperty('mine');
      expect(await operator.get('whisks', 'ns/hello')).toMatchObject({ _rev: whisk });
    });

    test('keeps refused records and its number, once, and changes nothing else of what was learned', async () => {
      const refused = 'An invoker keeps refused records';
      const id = 'refused-record/ns/1';
      const revision = await invoker.put('gpu', { _id: id });
      await invoker.delete('gpu', id, await invoker.put('gpu', { _id: id, _rev: revision, more: true }));
      const number = await invoker.put('gpu', { _id: 'process/invokers/0' });
      for (const [taken, _rev] of [
        ['process/invokers/0', number],
        ['learned', String((await operator.get('gpu', 'learned'))._rev)],
      ] as const) {
        await expect(invoker.put('gpu', { _id: taken, _rev, mine: true })).rejects.toThrow(refused);
        await expect(invoker.delete('gpu', taken, _rev)).rejects.toThrow(refused);
      }
      await expect(invoker.put('gpu', { _id: 'workload/mine' })).rejects.toThrow(refused);
    });

    test('changes no rights', async () => {
      for (const database of all) {
        expect(await statusOf('PUT', `${database}/_security`, {})).toBe(401);
        expect(await statusOf('PUT', `${database}/_design/gpuwhisk-access`, { views: {} })).toBe(401);
        expect(await statusOf('DELETE', database)).toBe(401);
      }
    });

    test('is left as it is by another call, and has another password after a call with that', async () => {
      expect(await makeDatabases('first')).toContain('is as it should be');
      expect(await makeDatabases('second')).toContain('was made');
      await expect(open('gpuwhisk-invoker', 'first')).rejects.toThrow('incorrect');
      const again = await open('gpuwhisk-invoker', 'second');
      await again.close();
      await expect(makeDatabases('')).rejects.toThrow('INVOKER_COUCHDB_PASSWORD must be set');
    });
  },
);
