// A platform whose CouchDB is killed, stays away, hangs, or answers with errors.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasCouchdb, startCouchdb } from '../contract/couchdb-server.js';
import type { CouchdbServer } from '../contract/couchdb-server.js';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { administer } from '../support/operator.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { startHttpProxy } from './http-proxy.js';
import type { HttpProxy } from './http-proxy.js';

const testMs = 120_000;
const waitMs = 60_000;
const timeoutMs = 3000;
const prefixes = ['chaos_'];
const maxUnstoredBytes = 1_000_000;
const code = 'function main({ n, bytes = 0 }) { return { n, text: "x".repeat(bytes) }; }';

(hasCouchdb ? describe : describe.skip)('a platform whose CouchDB is in trouble', () => {
  const dataDir = newDataDir();
  let dir: string;
  let couchdb: CouchdbServer;
  let proxy: HttpProxy;
  let platform: RunningPlatform;
  let api: ApiClient;

  const start = async (): Promise<void> => {
    const settings = { 'couchdb.timeoutMs': timeoutMs, maxUnstoredBytes, blockingWaitMs: 2000, poolMemoryMiB: 512 };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const own = ['--stem-cells', 'false', '--containers', 'process', '--gateway-port', 'off', '--gpus', 'none'];
    const where = ['--couchdb', proxy.url, '--couchdb-prefix', 'chaos_'];
    platform = await startPlatform({ dataDir, flags: [...where, ...own, ...flags] });
    ({ api } = platform);
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-couchdb-'));
    couchdb = await startCouchdb({ dir, prefixes });
    proxy = await startHttpProxy(couchdb.url);
    await start();
    await api.putAction('echo', code, { limits: { memory: 128 } });
    expect((await api.invokeForResult('echo', { n: 0 })).body.n).toBe(0);
  }, testMs);

  afterEach(() => proxy.treat(() => 'pass'));

  afterAll(async () => {
    await platform.end('SIGTERM');
    removeDataDir(dataDir);
    await proxy.close();
    await couchdb.stop();
    await rm(dir, { recursive: true, force: true });
  }, testMs);

  const submitMany = (count: number, payload = {}): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => api.submit('echo', { n, ...payload })));

  const pending = async (unit = '', what = 'pending'): Promise<number> => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    return Number(new RegExp(`^gpuwhisk_invoker_records_${what}${unit} (\\d+)`, 'm').exec(text)?.[1]);
  };
  const untilPending = (count: number) =>
    until(`${count} records wait`, async () => (await pending()) >= count, waitMs);

  /** Expects a record for each id. */
  async function expectRecords(ids: readonly string[]): Promise<void> {
    const records = await Promise.all(ids.map((id) => api.record(id, waitMs)));
    const failed = records.filter(({ response }) => !response.success);
    expect(failed.map(({ response }) => response.result)).toEqual([]);
    await until('no record waits', async () => (await pending()) === 0, waitMs);
  }

  const statusOfRecord = async (id: string): Promise<number> =>
    (await api.request('GET', `_/activations/${id}`)).status;

  test(
    'killed under traffic and away for a while: what was accepted is run and recorded once it is back',
    async () => {
      const accepted = await submitMany(20);
      // TEST_COUCHDB_URL may name a server that tests must not kill: the proxy breaks its connections instead.
      if (couchdb.isOwn) await couchdb.kill();
      else proxy.treat(() => 'break');
      accepted.push(...(await submitMany(40)));
      await untilPending(40);
      // Blocking callers get an answer in time: the result if the record was available soon enough, otherwise the id.
      const blocking = await api.invoke('echo', { n: 1 });
      expect(blocking.status).toBe(202);
      accepted.push(blocking.body.activationId);
      expect(await statusOfRecord(blocking.body.activationId)).toBe(500);
      expect(
        (await api.request('PUT', '_/actions/other?overwrite=true', { exec: { kind: 'nodejs:20', code } })).status,
      ).toBe(500);
      if (couchdb.isOwn) couchdb = await startCouchdb({ port: couchdb.port, dir, prefixes });
      else proxy.treat(() => 'pass');
      await expectRecords(accepted);
      expect((await api.invoke('echo', { n: 2 })).status).toBe(200);
    },
    testMs,
  );

  test(
    'connections that hang and answers that are slow are given up; nobody waits for ever',
    async () => {
      proxy.treat(() => 'hang');
      const accepted = await submitMany(10);
      const beganMs = performance.now();
      expect(await statusOfRecord(accepted[0] as string)).toBe(500);
      expect(performance.now() - beganMs).toBeGreaterThan(timeoutMs - 100);
      await untilPending(10);
      proxy.treat(() => ({ delayMs: 300 }));
      await expectRecords(accepted);
    },
    testMs,
  );

  test.each([
    [409, 'conflict'],
    [500, 'internal_server_error'],
    [507, 'insufficient_storage'],
  ])(
    'a storm of %i (%s): records are kept, and stored when it is over',
    async (status, error) => {
      proxy.treat((method) => (method === 'GET' ? 'pass' : { status, error }));
      const accepted = await submitMany(10);
      await untilPending(10);
      const put = await api.request('PUT', '_/actions/other?overwrite=true', { exec: { kind: 'nodejs:20', code } });
      expect(put.status).toBe(status === 409 ? 409 : 500);
      const already = proxy.seen.length;
      await until(
        'it is tried again',
        () => proxy.seen.slice(already).some((call) => call.endsWith('_bulk_docs')),
        waitMs,
      );
      // Retries send one write at a time, at growing intervals.
      expect(proxy.seen.filter((call) => call.endsWith('_bulk_docs')).length).toBeLessThan(200);
      proxy.treat(() => 'pass');
      await expectRecords(accepted);
    },
    testMs,
  );

  test.each([
    ['JSON that ends early', { status: 200, type: 'application/json', body: '{"rows": [' }],
    ['a page of somebody between', { status: 200, type: 'text/html', body: '<html>' }],
    ['a page that breaks off', { status: 200, type: 'text/html', body: '<html>', breaksOff: true }],
    ['bytes that break off', { status: 200, type: 'application/octet-stream', body: '{', breaksOff: true }],
    ['an error without a word', { status: 500, type: 'application/json', body: 'null' }],
  ])(
    'answers with %s: what has to ask is answered 500, and the platform goes on',
    async (_, answer) => {
      proxy.treat(() => answer);
      const accepted = await submitMany(3);
      expect(await statusOfRecord(accepted[0] as string)).toBe(500);
      await untilPending(3);
      proxy.treat(() => 'pass');
      await expectRecords(accepted);
    },
    testMs,
  );

  test(
    'while records wait that take more than they may, no run begins; what was accepted is run later',
    async () => {
      proxy.treat((method) => (method === 'GET' ? 'pass' : { status: 507, error: 'insufficient_storage' }));
      const bytes = 50_000;
      const accepted = await submitMany(80, { bytes });
      await until('records take what they may', async () => (await pending('_bytes')) >= maxUnstoredBytes, waitMs);
      const began = await pending();
      // At most four runs were under way at the limit: 512 MiB for containers of 128 MiB.
      expect(await pending('_bytes')).toBeLessThan(maxUnstoredBytes + 5 * (bytes + 1000));
      await new Promise((resolve) => setTimeout(resolve, 1000));
      expect(await pending()).toBeLessThanOrEqual(began + 4);
      proxy.treat(() => 'pass');
      await expectRecords(accepted);
    },
    testMs,
  );

  test(
    'records that are refused for good are set aside, and those who come after are served',
    async () => {
      const refuse = { status: 400, error: 'bad_request' };
      proxy.treat((method, url) => (url.endsWith('/_bulk_docs') ? refuse : 'pass'));
      const accepted = await submitMany(5);
      await until('all are refused', async () => (await pending('_total', 'refused')) >= 5, waitMs);
      await until('none waits', async () => (await pending()) === 0, waitMs);
      proxy.treat(() => 'pass');
      const listed = (await administer(platform, 'GET', 'refused-records')) as unknown as { id: string }[];
      expect(listed.map(({ id }) => id).sort()).toEqual(accepted.map((id) => `guest/${id}`).sort());
      expect(await administer(platform, 'GET', `refused-records/guest/${String(accepted[0])}`)).toMatchObject({
        activationId: accepted[0],
        response: { result: { text: '' } },
      });
      await administer(platform, 'DELETE', `refused-records/guest/${String(accepted[0])}`);
      expect((await api.invoke('echo', { n: 1 })).status).toBe(200);
    },
    testMs,
  );

  test(
    'lists of activations are what a view has that lags',
    async () => {
      const known = await submitMany(3);
      await expectRecords(known);
      const lists = async (): Promise<string[]> => {
        const { body } = await api.request<ApiActivation[]>('GET', '_/activations?limit=200');
        return body.map(({ activationId }) => activationId);
      };
      expect(await lists()).toEqual(expect.arrayContaining(known));
      proxy.treat((_, url) => (url.includes('/_view/activations') && !url.includes('stale=ok') ? 'hang' : 'pass'));
      const [late] = await submitMany(1);
      await expectRecords([late as string]);
      expect(await lists()).toEqual(expect.arrayContaining(known));
      proxy.treat(() => 'pass');
      await until('the view has caught up', async () => (await lists()).includes(late as string), waitMs);
    },
    testMs,
  );

  test(
    'stopped while its CouchDB is away: it ends in order, and each has one record after the next start',
    async () => {
      proxy.treat(() => 'hang');
      const accepted = await submitMany(5);
      await untilPending(5);
      expect(await platform.end('SIGTERM')).toBe(0);
      proxy.treat(() => 'pass');
      await start();
      for (const id of accepted) {
        const { response } = await api.record(id, waitMs);
        // A write that was sent may have been stored even if its answer was lost.
        if (!response.success) {
          expect(response.result).toEqual({ error: 'The invoker stopped while the action ran.' });
        }
      }
      expect((await api.invoke('echo', { n: 3 })).status).toBe(200);
    },
    testMs,
  );
});
