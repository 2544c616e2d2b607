// The CouchDB store against a server that answers as a CouchDB in trouble does, or not at all.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { StoreRefusedError, StoreWriteError } from '@gpuwhisk/common/store/store-error';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';

const timeoutMs = 2500;
const record = (id: string) => ({ _id: `guest/${id}` });
const newest = { view: 'activations', startKey: ['guest'], endKey: ['guest', 1] } as const;

describe('the CouchDB store with a server in trouble', () => {
  let server: Server;
  let store: ArtifactStore;
  /** Paths and queries of the requests since the store was opened. */
  let asked: string[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;

  const say = (status: number, body: unknown, type = 'application/json') => {
    answer = (_, response) => response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body));
  };
  const sayNothing = (): void => {
    answer = () => undefined;
  };

  beforeEach(async () => {
    say(200, {});
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      answer(request, response);
    }).listen(0, '127.0.0.1');
    asked = [];
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    store = await openCouchdbStore({ url: `http://127.0.0.1:${port}`, prefix: 't_', timeoutMs, clock: systemClock });
    asked = [];
  });

  afterEach(async () => {
    await store.close();
    server.close();
    server.closeAllConnections();
  });

  test('a request that is not answered is given up; a write is not sent again', async () => {
    sayNothing();
    await expect(store.put('whisks', { _id: 'guest/a' })).rejects.toThrow(`no answer within ${timeoutMs} ms`);
    expect(asked).toEqual(['/t_whisks/guest%2Fa']);
    await expect(store.get('whisks', 'guest/a')).rejects.toThrow(`no answer within ${timeoutMs} ms`);
  });

  test('an answer that never ends is given up', async () => {
    answer = (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{');
    await expect(store.get('whisks', 'guest/a')).rejects.toThrow(`no answer within ${timeoutMs} ms`);
  });

  test('a read is tried three times where the server fails, and not again where it refuses', async () => {
    let failures = 2;
    answer = (_, response) => {
      const fails = failures-- > 0;
      response.writeHead(fails ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify({ _id: 'a' }));
    };
    expect(await store.get('whisks', 'a')).toEqual({ _id: 'a' });
    expect(asked).toHaveLength(3);
    asked = [];
    say(401, { error: 'unauthorized', reason: 'Name or password is incorrect.' });
    await expect(store.get('whisks', 'a')).rejects.toThrow('Name or password is incorrect.');
    expect(asked).toHaveLength(1);
  });

  test.each([500, 503, 507, 409, 429, 401])(
    'records are not stored, and may be tried again, after a %i',
    async (status) => {
      say(status, { error: 'trouble', reason: 'eacces' });
      const refused: unknown = await store.createMany('activations', [record('a')]).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(Error);
      expect(refused).not.toBeInstanceOf(StoreRefusedError);
    },
  );

  test.each(['no_db_file', 'Database does not exist.'])(
    'that a database is not there (%s) is no word about its documents',
    async (reason) => {
      say(404, { error: 'not_found', reason });
      const refused: unknown = await store.get('activations', 'guest/a').catch((error: unknown) => error);
      expect(refused).not.toBeInstanceOf(NoDocumentError);
      expect(refused).toMatchObject({ message: reason });
      say(404, { error: 'not_found', reason: 'missing' });
      await expect(store.get('activations', 'guest/a')).rejects.toBeInstanceOf(NoDocumentError);
    },
  );

  test('a write that the disk has no room for names the reason', async () => {
    say(507, { error: 'insufficient_storage', reason: 'enospc' });
    const put = store.put('whisks', { _id: 'guest/a' });
    await expect(put).rejects.toBeInstanceOf(StoreWriteError);
    await expect(put).rejects.toThrow('enospc');
  });

  test('records that are too large, or that a server will never take, are refused for good', async () => {
    say(413, { error: 'document_too_large', reason: 'guest/a' });
    const tooLarge = store.createMany('activations', [record('a'), record('b')]);
    await expect(tooLarge).rejects.toMatchObject({ constructor: StoreRefusedError, tooLarge: true });
    say(201, [
      { ok: true, id: 'guest/a' },
      { id: 'guest/b', error: 'forbidden', reason: 'no such records here' },
    ]);
    const forbidden = store.createMany('activations', [record('a'), record('b')]);
    await expect(forbidden).rejects.toMatchObject({ constructor: StoreRefusedError, tooLarge: false });
  });

  test('records that are there already are told from those that were created', async () => {
    say(201, [
      { ok: true, id: 'guest/a' },
      { id: 'guest/b', error: 'conflict' },
    ]);
    expect(await store.createMany('activations', [record('a'), record('b')])).toEqual([true, false]);
    say(409, { error: 'conflict', reason: 'Document update conflict.' });
    await expect(store.put('whisks', { _id: 'guest/a' })).rejects.toBeInstanceOf(DocumentConflictError);
  });

  test('a list of activations is a little old rather than late; one of entities is not', async () => {
    const rows = { rows: [{ id: 'guest/a', key: ['guest', 1], value: {} }] };
    answer = (request, response) => {
      if (!request.url?.includes('stale=ok')) return;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rows));
    };
    const late = store.query('whisks', { ...newest, view: 'actions' });
    await expect(late).rejects.toThrow('no answer');
    expect(asked.filter((url) => url.includes('stale'))).toEqual([]);
    expect((await store.query('activations', newest)).map(({ id }) => id)).toEqual(['guest/a']);
  });
});
