// The API over stored documents that another release wrote or that are damaged.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { alice, startApi } from './harness.js';
import type { Api } from './harness.js';

const action: StoredDocument = {
  _id: 'alice/echo',
  entityType: 'action',
  namespace: 'alice',
  name: 'echo',
  version: '0.0.3',
  publish: false,
  annotations: [],
  parameters: [],
  updated: 1_700_000_000_000,
  limits: { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 },
  exec: { kind: 'nodejs:20', binary: false, code: 'function main(a) { return a; }' },
};
const path = '/api/v1/namespaces/_/actions';

describe('a document of an action', () => {
  let api: Api;

  beforeEach(async () => {
    api = await startApi();
  });

  afterEach(() => api.close());

  const get = async (document: StoredDocument): Promise<{ status: number; json: Record<string, unknown> }> => {
    await api.store.put('whisks', document);
    const { status, json } = await api.request('GET', `${path}/echo`, { as: alice });
    return { status, json: json as Record<string, unknown> };
  };

  test('with fields that nobody knows is read without them', async () => {
    const { status, json } = await get({
      ...action,
      future: { n: 1 },
      limits: { ...(action.limits as object), quantum: 3 },
    });
    expect([status, json.name, json.future]).toEqual([200, 'echo', undefined]);
  });

  test.each<[string, Partial<StoredDocument>]>([
    ['entity type', { entityType: undefined as never }],
    ['concurrency', { limits: { timeout: 60_000, memory: 256, logs: 10 } }],
    ['time of change', { updated: undefined as never }],
  ])('of an older release, without %s, is read', async (_, changes) => {
    const document = JSON.parse(JSON.stringify({ ...action, ...changes })) as StoredDocument;
    expect((await get(document)).status).toBe(200);
  });

  test.each<[string, Partial<StoredDocument>]>([
    ['exec', { exec: 'code' }],
    ['name', { name: 7 }],
    ['limits', { limits: 'many' }],
    ['parameters', { parameters: 'none' }],
  ])('with %s of a wrong type is an error of its own, and others are served', async (_, changes) => {
    const { status, json } = await get({ ...action, ...changes } as StoredDocument);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(typeof json.error).toBe('string');
    await api.store.put('whisks', { ...action, _id: 'alice/fine', name: 'fine' });
    expect((await api.request('GET', `${path}/fine`, { as: alice })).status).toBe(200);
    expect((await api.request('GET', path, { as: alice })).status).toBe(200);
  });

  test('whose attachment is missing is an error, and can be written anew and deleted', async () => {
    const exec = {
      kind: 'nodejs:20',
      binary: false,
      code: { attachmentName: 'couch:gone', attachmentType: 'text/plain' },
    };
    const { status, json } = await get({ ...action, exec });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(typeof json.error).toBe('string');
    const body = { exec: { kind: 'nodejs:20', code: 'function main(a) { return a; }' } };
    const put = await api.request('PUT', `${path}/echo?overwrite=true`, { as: alice, body });
    expect(put.status).toBe(200);
    expect((await api.request('DELETE', `${path}/echo`, { as: alice })).status).toBe(200);
  });
});
