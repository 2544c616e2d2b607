import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Trial } from '../trial.js';

const corrupted = 'Resource is corrupted and cannot be read.';
const needs = 'operator';

/** Stores a document without checks, and deletes it after the case. */
async function store(t: Trial, database: 'whisks' | 'activations', id: string, fields: object): Promise<void> {
  const path = `/api/v1/admin/databases/${database}/documents/${encodeURIComponent(id)}`;
  const operator = t.operator();
  const { rev } = accepted(await operator.send<{ rev: string }>('PUT', path, { body: { _id: id, ...fields } }));
  t.atEnd(() => operator.send('DELETE', `${path}?rev=${rev}`));
}

/** Stores an entity whose document is not valid for its type. */
async function damaged(t: Trial, entityType: string, fields: object): Promise<string> {
  const name = t.name(entityType);
  await store(t, 'whisks', `${t.namespace}/${name}`, { namespace: t.namespace, name, entityType, ...fields });
  return name;
}

const rows: Row[] = [
  ...Object.entries({
    actions: { exec: 7, version: '0.0.1' },
    triggers: { limits: {}, parameters: 'none', version: '0.0.1' },
    packages: { binding: {}, parameters: 'none', version: '0.0.1' },
    rules: { trigger: 'none', action: 7, version: '0.0.1' },
  }).map(([collection, fields]): Row => ({
    fact: `one of ${collection} whose document cannot be read: 500, whatever is asked`,
    needs,
    run: async (t) => {
      const name = await damaged(t, collection.slice(0, -1), fields);
      refused(await t.get(`${collection}/${name}`), 500, corrupted);
      refused(await t.user.api('PUT', `_/${collection}/${name}?overwrite=true`, { annotations: [] }), 500, corrupted);
      refused(await t.delete(`${collection}/${name}`), 500, corrupted);
      if (collection === 'rules') refused(await t.post(`rules/${name}`, { status: 'active' }), 500, corrupted);
      else if (collection !== 'packages') refused(await t.post(`${collection}/${name}`, {}), 500, corrupted);
    },
  })),
  {
    fact: 'a record that cannot be read: 500',
    source: 'core/controller/.../core/controller/Activations.scala',
    needs,
    run: async (t) => {
      const activationId = 'f'.repeat(24) + String(Math.floor(process.hrtime()[1])).padStart(8, '0').slice(-8);
      await store(t, 'activations', `${t.namespace}/${activationId}`, { activationId, entityType: 'activation' });
      for (const part of ['', '/logs', '/result'])
        refused(await t.get(`activations/${activationId}${part}`), 500, corrupted);
    },
  },
  {
    fact: 'a sequence of an action whose document cannot be read: 500',
    source: 'core/controller/.../core/controller/actions/SequenceActions.scala',
    needs,
    run: async (t) => {
      const name = await t.action(echo);
      const sequence = await t.sequence([name]);
      const id = encodeURIComponent(`${t.namespace}/${name}`);
      const path = `/api/v1/admin/databases/whisks/documents/${id}`;
      const before = accepted(await t.operator().send<{ _rev: string }>('GET', path));
      const { rev } = accepted(await t.operator().send<{ rev: string }>('PUT', path, { body: { ...before, exec: 7 } }));
      t.atEnd(() => t.operator().send('PUT', path, { body: { ...before, _rev: rev } }));
      expect((await t.invoke(sequence, {})).status).toBe(500);
    },
  },
];

/** Damaged documents. OpenWhisk's ActionsApiTests and other suites store such documents themselves. */
export const unreadableCases = table('unreadable', 'common/scala/.../core/entity/WhiskEntity.scala', rows);
