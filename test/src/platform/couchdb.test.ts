// The platform on a CouchDB: an empty one, and one with entities of an OpenWhisk.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hasCouchdb, startCouchdb } from '../contract/couchdb-server.js';
import type { CouchdbServer } from '../contract/couchdb-server.js';
import { startAndFail, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const key = 'k'.repeat(64);
const uuid = '11111111-2222-4333-8444-555555555555';
const entity = { version: '0.0.3', publish: false, annotations: [], parameters: [], updated: 1_700_000_000_000 };

/** Documents that an OpenWhisk stores: an identity, an action with its code as attachment, and one in an old format. */
const left: Record<string, Record<string, object>> = {
  subjects: { alice: { subject: 'alice', namespaces: [{ name: 'alice', uuid, key }] } },
  whisks: {
    'alice/greet': {
      ...entity,
      entityType: 'action',
      namespace: 'alice',
      name: 'greet',
      limits: { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 },
      exec: {
        kind: 'nodejs:20',
        binary: false,
        code: { attachmentName: 'couch:6f1c', attachmentType: 'text/plain; charset=UTF-8' },
      },
      _attachments: {
        '6f1c': {
          content_type: 'text/plain; charset=UTF-8',
          data: Buffer.from("function main({ name }) { return { greeting: 'hello ' + name }; }").toString('base64'),
        },
      },
    },
    '_design/whisks.v2.1.0': { language: 'javascript', views: {}, madeBy: 'OpenWhisk' },
  },
  activations: {},
};

(hasCouchdb ? describe : describe.skip)('a platform on CouchDB', () => {
  let couchdb: CouchdbServer;
  let platform: RunningPlatform | undefined;

  beforeAll(async () => {
    couchdb = await startCouchdb({ prefixes: ['new_', 'ow_'] });
  });

  afterEach(async () => {
    await platform?.stop();
    platform = undefined;
  });

  afterAll(() => couchdb.stop());

  const start = async (prefix: string): Promise<RunningPlatform> =>
    (platform = await startPlatform({
      flags: ['--stem-cells', 'false', '--couchdb', couchdb.url, '--couchdb-prefix', prefix],
    }));

  const request: CouchdbServer['request'] = (...parts) => couchdb.request(...parts);

  test('keeps there what is made, and finds it with a new data folder', async () => {
    const { api } = await start('new_');
    const code = `// ${'x'.repeat(20_000)}\nfunction main(a) { return a; }`;
    await api.request('PUT', '_/packages/utils', {});
    await api.putAction('utils/echo', code);
    await api.request('PUT', '_/triggers/tick', {});
    await api.request('PUT', '_/rules/each', { trigger: '/_/tick', action: '/_/utils/echo' });
    const { record } = await api.run('utils/echo', { n: 1 });
    expect(record.response.result).toEqual({ n: 1 });
    expect((await api.request('DELETE', '_/triggers/none')).status).toBe(404);
    await api.putAction('utils/echo', code.replace('return a', 'return { again: a }'));
    await platform?.stop();

    const { api: later } = await start('new_');
    const lists = ['actions', 'packages', 'triggers', 'rules'].map((kind) =>
      later.request<{ name: string }[]>('GET', `_/${kind}`),
    );
    expect((await Promise.all(lists)).map(({ body }) => body.map(({ name }) => name))).toEqual([
      ['echo'],
      ['utils'],
      ['tick'],
      ['each'],
    ]);
    expect((await later.invokeForResult('utils/echo', { n: 2 })).body).toEqual({ again: { n: 2 } });
    expect((await later.record(record.activationId)).response.result).toEqual({ n: 1 });
    const listed = await later.request<{ activationId: string }[]>('GET', '_/activations?name=utils/echo&limit=10');
    expect(listed.body.map(({ activationId }) => activationId)).toContain(record.activationId);
    const document = await request('GET', `new_whisks/${encodeURIComponent('guest/utils/echo')}`);
    expect(Object.keys(document._attachments as object)).toHaveLength(1);
  });

  test('text with half a surrogate pair is answered, and recorded, with U+FFFD in its place', async () => {
    const { api } = await start('new_');
    const code = "function main() { console.log('\\ud800'); return { text: 'a\\ud800b', ['\\udc00']: 1 }; }";
    await api.putAction('halves', code, { annotations: { note: '\ud83d' } });
    const { record } = await api.run('halves');
    expect(record.response.result).toEqual({ text: 'a\ufffdb', '\ufffd': 1 });
    expect((await api.record(record.activationId)).response.result).toEqual(record.response.result);
    expect((await api.invokeForResult('halves', {})).body).toEqual(record.response.result);
  });

  test("runs an OpenWhisk's actions for its users, whose keys stay the only ones", async () => {
    for (const [database, documents] of Object.entries(left)) {
      await request('PUT', `ow_${database}`);
      for (const [id, document] of Object.entries(documents)) {
        await request('PUT', `ow_${database}/${id.startsWith('_') ? id : encodeURIComponent(id)}`, document);
      }
    }
    const { api, output } = await start('ow_');
    expect(output()).toContain('with a key from the database');
    const guest = api.as(
      '23bc46b1-71f6-4ed5-8c54-816aa4f8c502:123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP',
    );
    expect((await guest.request('GET', '_/actions')).status).toBe(401);
    const alice = api.as(`${uuid}:${key}`);
    expect((await alice.invokeForResult('greet', { name: 'you' })).body).toEqual({ greeting: 'hello you' });
    const { body } = await alice.request<{ version: string; exec: { code: string } }>('GET', '_/actions/greet');
    expect([body.version, body.exec.code]).toEqual(['0.0.3', expect.stringContaining("'hello '")]);
    const view = await request('GET', 'ow_whisks/_design/whisks.v2.1.0');
    expect(view.madeBy).toBe('OpenWhisk');
  });
});

test('a CouchDB that is not there is one plain line', async () => {
  const { code, stderr } = await startAndFail({ flags: ['--couchdb', 'http://me:secret@127.0.0.1:9'] });
  expect(code).toBe(1);
  expect(stderr.trim()).toMatch(/^CouchDB at http:\/\/127\.0\.0\.1:9 cannot be used: [^\n]*$/);
});
