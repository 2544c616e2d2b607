import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { fillStore } from './store-fill.js';

let folder: string;
let store: ArtifactStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-fill-'));
  store = await openLmdbStore(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const action = {
  _id: 'guest/noop',
  entityType: 'action',
  namespace: 'guest',
  name: 'noop',
  version: '0.0.1',
  publish: false,
  updated: 5,
  exec: { kind: 'nodejs:20', code: '', binary: false },
  limits: { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 },
  annotations: [],
  parameters: [],
};
const activation = {
  _id: `guest/${'f'.repeat(32)}`,
  entityType: 'activation',
  namespace: 'guest',
  name: 'noop',
  version: '0.0.1',
  publish: false,
  subject: 'guest',
  activationId: 'f'.repeat(32),
  start: 1_700_000_000_000,
  end: 1_700_000_000_005,
  duration: 5,
  response: { statusCode: 0, result: {} },
  logs: [],
  annotations: [{ key: 'path', value: 'guest/noop' }],
};

test('copies the platform’s own documents until there are as many as asked for', async () => {
  await store.put('whisks', action);
  await store.put('activations', activation);
  await fillStore(store, 'noop', { actions: 30, activations: 2500 });
  const all = { startKey: ['guest', 0], endKey: ['guest', Number.MAX_SAFE_INTEGER] };
  expect(await store.count('whisks', { view: 'actions', ...all })).toBe(30);
  expect(await store.count('activations', { view: 'activations', ...all })).toBe(2500);
  const rows = await store.query('activations', { view: 'activations', ...all, descending: true, limit: 2 });
  expect(rows.map(({ key }) => key[1])).toEqual([activation.start, activation.start - 1000]);
});

test('without an activation to copy it says so', async () => {
  await store.put('whisks', action);
  await expect(fillStore(store, 'noop', { actions: 1, activations: 1 })).rejects.toThrow('no activation');
});
