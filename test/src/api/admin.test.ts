import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { actionPath, alice, errorOf, hello, operator, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const admin = (method: string, path: string, body?: unknown): Promise<Reply> =>
  api.request(method, `/api/v1/admin/${path}`, { as: operator, ...(body !== undefined && { body }) });
const seen = (reply: Reply): [number, unknown] => [reply.status, reply.status === 200 ? reply.json : errorOf(reply)];
const missing = [404, 'The requested resource does not exist.'];
const key = 'k'.repeat(64);

/** Whether the API accepts this account's credentials. */
const isKnown = async (account: Account): Promise<boolean> =>
  (await api.request('GET', '/api/v1/namespaces', { as: account })).status === 200;

test('only operators are served', async () => {
  const operations = api.controller.routes.filter(({ path }) => path.startsWith('/api/v1/admin'));
  expect(operations.length).toBeGreaterThan(12);
  for (const { method, path } of operations) {
    const place = path.replaceAll(/\{\w+\}/g, 'subjects');
    const refused = await api.request(method, place, method === 'PUT' || method === 'POST' ? { body: {} } : {});
    expect([method, path, ...seen(refused)]).toEqual([
      method,
      path,
      403,
      "The supplied authentication is not authorized to access this resource, which is for operators. On the machine of a standalone server, gpuwhisk operator-key shows an operator's key.",
    ]);
    expect((await api.request(method, place, { as: null })).status).toBe(401);
  }
});

describe('subjects', () => {
  test('are made with their first key, which works at once, and deleted', async () => {
    expect(seen(await admin('GET', 'subjects/carol'))).toEqual(missing);
    const made = await admin('PUT', 'subjects/carol', {});
    const carol = made.json as Account & { name: string };
    expect(carol).toMatchObject({ subject: 'carol', name: 'carol', key: expect.stringMatching(/^[0-9A-Za-z]{64}$/) });
    expect(carol.uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await isKnown(carol)).toBe(true);
    const { subject, ...owned } = carol;
    expect(seen(await admin('GET', 'subjects/carol'))).toEqual([200, { subject, namespaces: [owned], blocked: false }]);
    expect(seen(await admin('DELETE', 'subjects/carol'))).toEqual([200, {}]);
    expect(await isKnown(carol)).toBe(false);
    expect(seen(await admin('DELETE', 'subjects/carol'))).toEqual(missing);
  });

  test('have a key for each namespace, given or random, and may get a new one', async () => {
    await admin('PUT', 'subjects/carol', { namespace: 'space1', uuid: 'u-1', key });
    const first = { subject: 'carol', namespace: 'space1', uuid: 'u-1', key };
    expect(await isKnown(first)).toBe(true);
    expect(seen(await admin('PUT', 'subjects/carol', { namespace: 'space1' }))).toEqual([
      409,
      'Namespace already exists',
    ]);
    await admin('PUT', 'subjects/carol', { namespace: 'space2', uuid: 'u-2', key });
    const anew = (await admin('PUT', 'subjects/carol', { namespace: 'space1', revoke: true })).json as Account;
    expect(await isKnown(first)).toBe(false);
    expect(await isKnown(anew)).toBe(true);
    expect(seen(await admin('DELETE', 'subjects/carol?namespace=space3'))).toEqual([
      404,
      'Namespace "space3" does not exist for "carol"',
    ]);
    expect((await admin('DELETE', 'subjects/carol?namespace=space1')).status).toBe(200);
    expect(await isKnown(anew)).toBe(false);
    expect((await admin('GET', 'subjects/carol')).json).toMatchObject({
      namespaces: [{ name: 'space2', uuid: 'u-2' }],
    });
  });

  test('that are blocked are strangers, and are not edited', async () => {
    const carol = { ...((await admin('PUT', 'subjects/carol', {})).json as Account), namespace: 'carol' };
    expect(await isKnown(carol)).toBe(true);
    expect((await admin('POST', 'subjects/carol/block')).json).toMatchObject({ subject: 'carol', blocked: true });
    expect(await isKnown(carol)).toBe(false);
    expect(seen(await admin('PUT', 'subjects/carol', { namespace: 'more' }))).toEqual([
      409,
      'The subject you want to edit is blocked',
    ]);
    expect(seen(await admin('POST', 'whois', { authkey: `${carol.uuid}:${carol.key}` }))).toEqual(missing);
    expect((await admin('POST', 'subjects/carol/unblock')).json).toMatchObject({ blocked: false });
    expect(await isKnown(carol)).toBe(true);
    expect(seen(await admin('POST', 'subjects/nobody/block'))).toEqual(missing);
  });

  test('are found by namespace and by key', async () => {
    for (const [name, uuid] of [
      ['carol', 'u-1'],
      ['david', 'u-2'],
    ])
      await admin('PUT', `subjects/${name}`, { namespace: 'shared', uuid, key });
    expect((await admin('GET', 'namespaces/shared/keys')).json).toEqual([
      { subject: 'carol', name: 'shared', uuid: 'u-1', key },
      { subject: 'david', name: 'shared', uuid: 'u-2', key },
    ]);
    expect((await admin('GET', 'namespaces/nothing/keys')).json).toEqual([]);
    expect((await admin('POST', 'whois', { authkey: `u-2:${key}` })).json).toMatchObject({
      subject: 'david',
      name: 'shared',
    });
    expect(seen(await admin('POST', 'whois', { authkey: `u-3:${key}` }))).toEqual(missing);
  });

  test.each([
    ['subjects/abc', {}, 'Subject name must be at least 5 characters'],
    ['subjects/carol', { key: 'short' }, 'The key must be 64 characters'],
    ['subjects/carol', { uuid: ' ' }, 'The uuid must not be blank'],
    ['subjects/carol', { uuid: 1 }, "'uuid' must be a string"],
    ['subjects/carol', { revoke: 'yes' }, "'revoke' must be true or false"],
    ['subjects/carol', [], 'JSON object expected'],
  ])('PUT %s %j is refused', async (path, body, text) => {
    expect(seen(await admin('PUT', path, body))).toEqual([400, `The request content was malformed:\n${text}`]);
    expect((await admin('GET', 'subjects/carol')).status).toBe(404);
  });

  test('a namespace with characters that none has is refused', async () => {
    expect(seen(await admin('PUT', 'subjects/carol', { namespace: 'a/b' }))).toEqual([
      400,
      'The namespace contains illegal characters.',
    ]);
  });
});

describe('limits', () => {
  test('are set one by one, hold at once, and are deleted', async () => {
    await api.request('PUT', actionPath('hello'), { body: hello });
    expect(seen(await admin('GET', 'limits/alice'))).toEqual(missing);
    const own = { invocationsPerMinute: 0, allowedKinds: ['nodejs:20', 'blackbox'], maxParameterSize: '4 KB' };
    expect(seen(await admin('PUT', 'limits/alice', own))).toEqual([200, own]);
    expect((await api.request('POST', actionPath('hello'))).status).toBe(429);
    expect((await api.request('GET', '/api/v1/namespaces/_/limits')).json).toMatchObject(own);
    const more = { storeActivations: false, invocationsPerMinute: null };
    const rest = { allowedKinds: own.allowedKinds, maxParameterSize: '4 KB', storeActivations: false };
    expect(seen(await admin('PUT', 'limits/alice', more))).toEqual([200, rest]);
    expect(seen(await admin('GET', 'limits/alice'))).toEqual([200, rest]);
    expect((await api.request('POST', actionPath('hello'))).status).toBe(202);
    expect(seen(await admin('DELETE', 'limits/alice'))).toEqual([200, {}]);
    expect(seen(await admin('DELETE', 'limits/alice'))).toEqual(missing);
  });

  test.each([
    [{ invocationsPerHour: 1 }, "'invocationsPerHour' is not a limit"],
    [{ _rev: 'x' }, "'_rev' is not a limit"],
    [{ firesPerMinute: -1 }, "'firesPerMinute' must be a whole number"],
    [{ firesPerMinute: '1' }, "'firesPerMinute' must be a whole number"],
    [{ allowedKinds: 'nodejs:20' }, "'allowedKinds' must be a list of kinds"],
    [{ storeActivations: 'no' }, "'storeActivations' must be true or false"],
    [{ maxPayloadSize: 1024 }, "'maxPayloadSize' must be a size such as '1 MB'"],
  ])('%j is refused', async (body, text) => {
    expect(seen(await admin('PUT', 'limits/alice', { concurrentInvocations: 1, ...body }))).toEqual([
      400,
      `The request content was malformed:\n${text}`,
    ]);
    expect((await admin('GET', 'limits/alice')).status).toBe(404);
  });
});

describe('documents', () => {
  const rows = async (path: string): Promise<Record<string, unknown>[]> =>
    ((await admin('GET', `databases/${path}`)).json as { rows: Record<string, unknown>[] }).rows;

  test('are listed by id, page by page, and by view', async () => {
    await api.request('PUT', actionPath('hello'), { body: hello });
    expect((await rows('subjects/documents')).map(({ id }) => id)).toEqual([
      'alice-subject',
      'bob-subject',
      'operator-subject',
    ]);
    const [second] = await rows('subjects/documents?after=alice-subject&limit=1&docs=true');
    expect(second).toEqual({
      id: 'bob-subject',
      key: 'bob-subject',
      value: { rev: expect.any(String) },
      doc: expect.objectContaining({ _id: 'bob-subject', subject: 'bob-subject' }),
    });
    const [action] = await rows('whisks/documents?view=whisks.v2.1.0/actions');
    expect(action).toMatchObject({ id: 'alice/hello', key: ['alice', expect.any(Number)], value: { name: 'hello' } });
    expect(action).not.toHaveProperty('doc');
    await api.store.put('subjects', { _id: 'bad/limits', invocationsPerMinute: 0 });
    expect(await rows('subjects/documents?view=namespaceThrottlings/blockedNamespaces')).toEqual([
      { id: 'bad/limits', key: ['bad'], value: 1 },
    ]);
    expect((await rows('subjects/documents?view=subjects.v2.0.0/identities&docs=true'))[0]).toMatchObject({
      doc: null,
    });
  });

  test('are read, written and deleted as they are, and seen at once', async () => {
    await api.request('PUT', actionPath('hello'), { body: hello });
    await api.request('POST', actionPath('hello'));
    const place = 'databases/whisks/documents/alice%2Fhello';
    const document = (await admin('GET', place)).json as Record<string, unknown>;
    expect(document).toMatchObject({ _id: 'alice/hello', entityType: 'action' });
    const { _rev: revision, ...withoutRevision } = document;
    expect(seen(await admin('PUT', place, withoutRevision))).toEqual([
      409,
      'Concurrent modification to resource detected.',
    ]);
    const written = await admin('PUT', place, { ...document, version: '7.0.0' });
    expect(written.json).toEqual({ ok: true, id: 'alice/hello', rev: expect.stringMatching(/^2-/) });
    await api.request('POST', actionPath('hello'));
    expect(api.invocations.at(-1)?.action.version).toBe('7.0.0');
    expect(seen(await admin('DELETE', `${place}?rev=${String(revision)}`))[0]).toBe(409);
    expect(seen(await admin('DELETE', place))[0]).toBe(400);
    const { rev } = written.json as { rev: string };
    expect((await admin('DELETE', `${place}?rev=${rev}`)).status).toBe(200);
    expect((await api.request('POST', actionPath('hello'))).status).toBe(404);
    expect(seen(await admin('GET', place))).toEqual(missing);
  });

  test('come with their code as an attachment, which replaces the one before', async () => {
    const place = 'databases/whisks/documents/alice%2Fimported';
    const code = 'function main() { return { imported: true }; }';
    const exec = { kind: 'nodejs:20', binary: false };
    const entity = {
      ...{ namespace: 'alice', name: 'imported', entityType: 'action', version: '4.5.6', publish: true, updated: 7 },
      parameters: [{ key: 'secret', value: 'QUJD', encryption: 'aes-128' }],
      annotations: [{ key: 'exec', value: 'nodejs:20' }],
      limits: { timeout: 1000, memory: 128, logs: 1, concurrency: 1 },
    };
    const withCode = (name: string, text: string): object => ({
      ...entity,
      exec: { ...exec, code: { attachmentName: name, attachmentType: 'text/plain' } },
      _attachments: {
        [name.replace('couch:', '')]: { content_type: 'text/plain', data: Buffer.from(text).toString('base64') },
      },
    });
    const made = await admin('PUT', place, withCode('codefile', code));
    expect(made.json).toEqual({ ok: true, id: 'alice/imported', rev: expect.stringMatching(/^1-/) });
    const shown = (await api.request('GET', actionPath('imported'))).json;
    expect(shown).toMatchObject({ version: '4.5.6', publish: true, updated: 7, exec: { ...exec, code } });
    expect(shown).toMatchObject({ parameters: entity.parameters, limits: entity.limits });
    expect(seen(await admin('PUT', place, withCode('codefile', 'lost')))[0]).toBe(409);
    expect((await api.request('GET', actionPath('imported'))).json).toEqual(shown);
    const { rev } = made.json as { rev: string };
    const replaced = await admin('PUT', place, { ...withCode('couch:abc', 'other'), _rev: rev });
    expect(replaced.status).toBe(200);
    expect((await api.request('GET', actionPath('imported'))).json).toMatchObject({ exec: { ...exec, code: 'other' } });
    await expect(api.store.getAttachment('whisks', 'alice/imported', 'codefile')).rejects.toThrow();
  });

  test('are created in numbers; those that are there stay', async () => {
    const records = (...ids: string[]): object => ({
      documents: ids.map((id) => ({
        _id: `alice/${id}`,
        activationId: id,
        namespace: 'alice',
        start: 1,
        from: ids[0],
      })),
    });
    const place = 'databases/activations/documents';
    expect(seen(await admin('POST', place, records('a', 'b')))).toEqual([200, { created: [true, true] }]);
    expect(seen(await admin('POST', place, records('c', 'b')))).toEqual([200, { created: [true, false] }]);
    expect(await api.store.get('activations', 'alice/b')).toMatchObject({ from: 'a' });
  });

  test('of subjects count at once', async () => {
    expect(await isKnown(alice)).toBe(true);
    const place = 'databases/subjects/documents/alice-subject';
    const document = (await admin('GET', place)).json as Record<string, unknown>;
    await admin('PUT', place, { ...document, blocked: true });
    expect(await isKnown(alice)).toBe(false);
  });

  test.each([
    ['GET', 'databases/secrets/documents', undefined],
    ['GET', 'databases/toString/documents', undefined],
    ['GET', 'databases/whisks/documents?view=whisks.v2.1.0/nothing', undefined],
    ['GET', 'databases/whisks/documents?view=toString', undefined],
    ['GET', 'databases/whisks/documents?limit=1001', undefined],
    ['GET', 'databases/whisks/documents?limit=x', undefined],
    ['PUT', 'databases/whisks/documents/a', { _id: 'b' }],
    ['PUT', 'databases/whisks/documents/a', { _rev: 1 }],
    ['PUT', 'databases/whisks/documents/a', 'text'],
    ['PUT', 'databases/whisks/documents/a', { _attachments: {} }],
    ['PUT', 'databases/whisks/documents/a', { _attachments: { code: { stub: true, content_type: 'text/plain' } } }],
    ['POST', 'databases/whisks/documents', {}],
    ['POST', 'databases/whisks/documents', { documents: ['text'] }],
    ['POST', 'databases/whisks/documents', { documents: [{}] }],
    ['POST', 'databases/whisks/documents', { documents: [{ _id: 'a', _rev: '1-a' }] }],
  ])('%s %s %j is refused', async (method, path, body) => {
    expect((await admin(method, path, body === 'text' ? '"text"' : body)).status).toBe(400);
  });
});

test('the log is searched by transaction and text', async () => {
  const extra = { 'x-ow-extra-logging': 'on', 'x-request-id': 'the-one' };
  await api.request('GET', actionPath('nothing'), { headers: extra });
  await api.request('GET', actionPath('nothing'), { headers: { ...extra, 'x-request-id': 'another' } });
  const lines = async (query: string): Promise<Record<string, unknown>[]> =>
    ((await admin('GET', `syslog?${query}`)).json as { lines: string[] }).lines.map(
      (line) => JSON.parse(line) as Record<string, unknown>,
    );
  const found = await lines('transid=the-one');
  expect(found.length).toBeGreaterThan(0);
  expect(new Set(found.map(({ transid }) => transid))).toEqual(new Set(['the-one']));
  expect((await lines('grep=ANOTHER')).every(({ transid }) => transid === 'another')).toBe(true);
  expect(await lines('grep=no+such+text')).toEqual([]);
});

test('deletes of one thing at once leave it deleted, and each has an answer', async () => {
  for (let round = 0; round < 5; round++) {
    await admin('PUT', 'limits/alice', { invocationsPerMinute: 7 });
    await admin('PUT', 'subjects/carol', {});
    for (const path of ['limits/alice', 'subjects/carol']) {
      const deletes = await Promise.all(Array.from({ length: 8 }, () => admin('DELETE', path)));
      const statuses = deletes.map(({ status }) => status);
      expect(statuses).toContain(200);
      expect(statuses.filter((status) => ![200, 404, 409].includes(status))).toEqual([]);
    }
  }
});
