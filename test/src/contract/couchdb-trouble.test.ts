// The CouchDB store against a server that answers with errors or not at all.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import {
  DocumentConflictError,
  NoDocumentError,
  StoreRefusedError,
  StoreWriteError,
} from '@gpuwhisk/common/store/artifact-store';
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

  test('a refusal that is not of CouchDB, but of something between, may be tried again', async () => {
    say(400, 'Bad Request', 'text/html');
    const refused: unknown = await store.createMany('activations', [record('a')]).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StoreWriteError);
    expect(refused).not.toBeInstanceOf(StoreRefusedError);
    say(400, { error: 'bad_request', reason: 'invalid UTF-8 JSON' });
    await expect(store.createMany('activations', [record('a')])).rejects.toBeInstanceOf(StoreRefusedError);
    await expect(store.put('gpu', { _id: 'a' })).rejects.toBeInstanceOf(StoreRefusedError);
  });

  test('after records have expired, what is mostly not in use is compacted; who may not do that goes without', async () => {
    const sizes = (file: number, active: number) => ({ sizes: { file, active } });
    const view = '/t_activations/_design/whisks.v2.1.0';
    let mayCompact = true;
    const answers: Record<string, unknown> = {
      [`${view}/_view/activations?reduce=true&group_level=1`]: { rows: [{ key: ['guest'], value: 1 }] },
      '/t_activations': sizes(100e6, 40e6),
      [`${view}/_info`]: { view_index: sizes(20e6, 15e6) },
      '/t_activations/_design/whisks-filters.v2.1.1/_info': { view_index: sizes(20e6, 5e6) },
      '/t_activations/_all_docs': { rows: [{ id: 'guest/a', value: { rev: '1-a' } }] },
      '/t_activations/_bulk_docs': [{ ok: true, id: 'guest/a' }],
    };
    const row = { id: 'guest/a', key: ['guest', 1], value: { end: 2 } };
    answer = (request, response) => {
      const { method, url = '' } = request;
      const isForbidden = !mayCompact && method === 'POST' && url.includes('_compact');
      const body = url.includes('startkey') ? { rows: [row] } : (answers[url] ?? {});
      response.writeHead(isForbidden ? 403 : 200).end(JSON.stringify(isForbidden ? { error: 'forbidden' } : body));
    };
    const expire = async (): Promise<number[]> => {
      const removed: number[] = [];
      for await (const count of store.expire(1000)) removed.push(count);
      return removed;
    };
    expect(await expire()).toEqual([1]);
    expect(asked.filter((url) => /compact|cleanup/.test(url))).toEqual([
      '/t_activations/_compact',
      '/t_activations/_compact/whisks-filters.v2.1.1',
      '/t_activations/_view_cleanup',
    ]);
    mayCompact = false;
    expect(await expire()).toEqual([1]);
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

  test.each([
    ['does not answer', 'no answer', undefined],
    ['fails', 'os_process_error', 500],
  ])('a list of activations is a little old where the view %s; one of entities is not', async (_, problem, status) => {
    const rows = { rows: [{ id: 'guest/a', key: ['guest', 1], value: {} }] };
    answer = (request, response) => {
      if (!request.url?.includes('stale=ok')) {
        if (status !== undefined) response.writeHead(status).end(JSON.stringify({ error: problem, reason: problem }));
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rows));
    };
    const late = store.query('whisks', { ...newest, view: 'actions' });
    await expect(late).rejects.toThrow(problem);
    expect(asked.filter((url) => url.includes('stale'))).toEqual([]);
    expect((await store.query('activations', newest)).map(({ id }) => id)).toEqual(['guest/a']);
  });
});

describe('opening the CouchDB store', () => {
  let server: Server;
  /** Answers by method and path. Each is given once, in order; the last one is repeated. */
  let answers: Record<string, { status: number; body: object }[]>;
  let made: string[];
  let warnings: string[];

  beforeEach(async () => {
    answers = {};
    made = [];
    warnings = [];
    server = createServer((request, response) => {
      const { method = '', url = '' } = request;
      if (method === 'PUT') made.push(url);
      const listed = answers[`${method} ${url}`] ?? [{ status: 200, body: {} }];
      const { status, body } = (listed.length > 1 ? listed.shift() : listed[0]) ?? { status: 500, body: {} };
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(() => {
    server.close();
    server.closeAllConnections();
  });

  const open = (): Promise<ArtifactStore> => {
    const { port } = server.address() as AddressInfo;
    const onWarning = (warning: string): void => void warnings.push(warning);
    return openCouchdbStore({
      ...{ url: `http://127.0.0.1:${port}`, prefix: 't_', timeoutMs, clock: systemClock, onWarning },
    });
  };
  const missing = { status: 404, body: { error: 'not_found', reason: 'missing' } };
  const here = { status: 200, body: {} };
  const view = '/t_subjects/_design/namespaceThrottlings';

  test('a server that fails while others make the same is asked again', async () => {
    answers['GET /t_subjects'] = [missing, missing, here];
    answers['PUT /t_subjects'] = [{ status: 500, body: { error: 'error', reason: 'conflict' } }];
    answers[`GET ${view}`] = [missing];
    answers[`PUT ${view}`] = [
      { status: 404, body: { error: 'not_found', reason: 'Database does not exist.' } },
      { status: 500, body: { error: 'internal_server_error', reason: 'No DB shards could be opened.' } },
      { status: 201, body: { ok: true } },
    ];
    await (await open()).close();
    expect(made).toEqual(['/t_subjects', '/t_subjects', view, view, view]);
  });

  test('a server that goes on failing ends the start', async () => {
    answers['GET /t_whisks'] = [missing];
    answers['PUT /t_whisks'] = [{ status: 500, body: { error: 'error', reason: 'eacces' } }];
    await expect(open()).rejects.toThrow("the database 't_whisks' cannot be made: eacces");
  });

  const refusal = { status: 401, body: { error: 'unauthorized', reason: 'You are not a server admin.' } };

  test.each([
    ['a database', '/t_gpu', "the database 't_gpu' is missing"],
    ['a design document', view, "design document '_design/namespaceThrottlings' of database 't_subjects' is missing"],
  ])('%s that is missing, and that the account may not make, is named', async (_, path, problem) => {
    answers[`GET ${path}`] = [missing];
    answers[`PUT ${path}`] = [refusal];
    await expect(open()).rejects.toThrow(problem);
    await expect(open()).rejects.toThrow('this account may not make it (You are not a server admin.)');
    expect(made).toHaveLength(2);
  });

  test('a database that the account may not read is named', async () => {
    const forbidden = { error: 'forbidden', reason: 'You are not allowed to access this db.' };
    answers['GET /t_activations'] = [{ status: 403, body: forbidden }];
    await expect(open()).rejects.toThrow("the database 't_activations' cannot be read: You are not allowed");
  });

  test('settings that are known to harm are told; none to an account that may not see them', async () => {
    await (await open()).close();
    expect(warnings).toEqual([]);
    answers['GET /'] = [{ status: 200, body: { version: '3.5.0' } }];
    answers['GET /_node/_local/_versions'] = [{ status: 200, body: { javascript_engine: { name: 'spidermonkey' } } }];
    answers['GET /_membership'] = [{ status: 200, body: { cluster_nodes: ['a', 'b', 'c'] } }];
    await (await open()).close();
    expect(warnings.map((text) => /SpiderMonkey|lockout|cluster of 3/.exec(text)?.[0])).toEqual([
      'SpiderMonkey',
      'lockout',
      'cluster of 3',
    ]);
    warnings = [];
    answers['GET /_node/_local/_versions'] = [{ status: 200, body: { javascript_engine: { name: 'quickjs' } } }];
    answers['GET /_node/_local/_config/chttpd_auth_lockout'] = [{ status: 200, body: { mode: 'warn' } }];
    answers['GET /_membership'] = [{ status: 200, body: { cluster_nodes: ['a'] } }];
    await (await open()).close();
    expect(warnings).toEqual([]);
  });
});
