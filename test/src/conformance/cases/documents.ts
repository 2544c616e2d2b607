import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { accepted } from '../trial.js';
import type { Trial } from '../trial.js';
import { pairs } from './json-arguments.js';

const needs = 'operator';
const databases = '/api/v1/admin/databases';
type Fields = Record<string, unknown>;

/** A document as stored. */
async function documentOf(t: Trial, database: string, id: string): Promise<Fields> {
  const path = `${databases}/${database}/documents/${encodeURIComponent(id)}`;
  return accepted(await t.operator().send<Fields>('GET', path));
}

/** The rows of a view that belong to one document. */
async function rowsOf(t: Trial, database: string, view: string, id: string): Promise<Fields[]> {
  const found: Fields[] = [];
  for (let skip = 0; ; skip += 1000) {
    const query = `view=${encodeURIComponent(view)}&limit=1000&skip=${skip}`;
    const answer = await t.operator().send<{ rows: Fields[] }>('GET', `${databases}/${database}/documents?${query}`);
    const { rows } = accepted(answer);
    found.push(...rows.filter((row) => row.id === id));
    if (rows.length < 1000) return found;
  }
}

/** The members that the documents of all entities share. */
const common = (t: Trial, name: string, entityType: string, namespace = t.namespace): Fields => ({
  _id: `${namespace}/${name}`,
  _rev: expect.stringMatching(/^1-[0-9a-f]+$/),
  namespace,
  name,
  version: '0.0.1',
  publish: false,
  annotations: expect.any(Array),
  updated: expect.any(Number),
  entityType,
});

const rowOf = (t: Trial, name: string, namespace = t.namespace): Fields => ({
  ...{ namespace, name, version: '0.0.1', publish: false },
  ...{ annotations: expect.any(Array), updated: expect.any(Number) },
});

const limits = { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 };

const rows: Row[] = [
  {
    fact: 'an action with little code: the code is in its document',
    source: 'common/scala/.../core/database/AttachmentSupport.scala',
    needs,
    run: async (t) => {
      const name = await t.action(echo, { parameters: [{ key: 'p', value: 1 }] });
      const document = await documentOf(t, 'whisks', `${t.namespace}/${name}`);
      const attachmentName = expect.stringMatching(/^mem:[A-Za-z0-9_-]+=*$/);
      expect(document).toEqual({
        ...common(t, name, 'action'),
        parameters: pairs({ p: 1 }),
        limits: expect.objectContaining(limits),
        exec: {
          kind: expect.stringMatching(/^nodejs:\d+$/),
          binary: false,
          code: {
            attachmentName,
            attachmentType: 'text/plain; charset=UTF-8',
            digest: expect.stringMatching(/^sha256-[0-9a-f]{64}$/),
            length: echo.length,
          },
        },
      });
      const { code } = document.exec as { code: { attachmentName: string } };
      expect(Buffer.from(code.attachmentName.slice('mem:'.length), 'base64url').toString()).toBe(echo);
      expect(await rowsOf(t, 'whisks', 'whisks.v2.1.0/actions', `${t.namespace}/${name}`)).toEqual([
        {
          id: `${t.namespace}/${name}`,
          key: [t.namespace, document.updated],
          value: { ...rowOf(t, name), exec: { binary: false }, limits: document.limits },
        },
      ]);
    },
  },
  {
    fact: 'an action with more than 16 KiB of code: the code is an attachment',
    source: 'common/scala/.../core/database/AttachmentSupport.scala',
    needs,
    run: async (t) => {
      const name = await t.action(`${echo}//${'x'.repeat(20_000)}`);
      const { exec } = await documentOf(t, 'whisks', `${t.namespace}/${name}`);
      expect(exec).toMatchObject({
        code: {
          attachmentName: expect.stringMatching(/^couch:[0-9a-f-]{36}$/),
          attachmentType: 'text/plain; charset=UTF-8',
        },
      });
    },
  },
  {
    fact: 'an action in a package: its namespace has the package, and it is listed under both',
    source: 'common/scala/.../core/entity/WhiskAction.scala',
    needs,
    run: async (t) => {
      const packageName = await t.package();
      const name = t.name('action');
      await t.action(echo, {}, `${packageName}/${name}`);
      const namespace = `${t.namespace}/${packageName}`;
      const document = await documentOf(t, 'whisks', `${namespace}/${name}`);
      expect(document).toMatchObject(common(t, name, 'action', namespace));
      const found = await rowsOf(t, 'whisks', 'whisks.v2.1.0/actions', `${namespace}/${name}`);
      expect(found.map(({ key }) => key).sort()).toEqual([
        [t.namespace, document.updated],
        [namespace, document.updated],
      ]);
    },
  },
  {
    fact: 'a package has an empty binding, a binding has one; only a public package is in packages-public',
    source: 'common/scala/.../core/entity/WhiskPackage.scala',
    needs,
    run: async (t) => {
      const [own, shared] = [await t.package(), await t.package({ publish: true })];
      const bound = await t.package({ binding: { namespace: '_', name: own } });
      const plain = await documentOf(t, 'whisks', `${t.namespace}/${own}`);
      expect(plain).toEqual({ ...common(t, own, 'package'), binding: {}, parameters: [] });
      const binding = { namespace: t.namespace, name: own };
      const document = await documentOf(t, 'whisks', `${t.namespace}/${bound}`);
      expect(document).toEqual({ ...common(t, bound, 'package'), binding, parameters: [] });
      const values = async (view: string, name: string): Promise<unknown[]> =>
        (await rowsOf(t, 'whisks', `whisks.v2.1.0/${view}`, `${t.namespace}/${name}`)).map(({ value }) => value);
      expect(await values('packages', own)).toEqual([{ ...rowOf(t, own), binding: false }]);
      expect(await values('packages', bound)).toEqual([{ ...rowOf(t, bound), binding }]);
      expect(await values('packages-public', own)).toEqual([]);
      expect(await values('packages-public', shared)).toEqual([{ ...rowOf(t, shared), publish: true, binding: false }]);
    },
  },
  {
    fact: "a trigger's document has its rules with their status, a rule's has no status",
    source: 'common/scala/.../core/entity/WhiskRule.scala',
    needs,
    run: async (t) => {
      const action = await t.action(echo);
      const { trigger, rule } = await t.linked(action, { parameters: pairs({ a: 1 }) });
      const target = { path: t.namespace, name: action };
      expect(await documentOf(t, 'whisks', `${t.namespace}/${rule}`)).toEqual({
        ...common(t, rule, 'rule'),
        trigger: { path: t.namespace, name: trigger },
        action: target,
      });
      const document = await documentOf(t, 'whisks', `${t.namespace}/${trigger}`);
      expect(document).toEqual({
        ...common(t, trigger, 'trigger'),
        _rev: expect.stringMatching(/^2-/),
        parameters: pairs({ a: 1 }),
        limits: {},
        rules: { [`${t.namespace}/${rule}`]: { action: target, status: 'active' } },
      });
      expect(await rowsOf(t, 'whisks', 'whisks.v2.1.0/triggers', `${t.namespace}/${trigger}`)).toEqual([
        { id: `${t.namespace}/${trigger}`, key: [t.namespace, document.updated], value: rowOf(t, trigger) },
      ]);
      const [row] = await rowsOf(t, 'whisks', 'whisks.v2.1.0/rules', `${t.namespace}/${rule}`);
      expect(row).toMatchObject({ key: [t.namespace, expect.any(Number)], value: 1 });
    },
  },
  {
    fact: 'a record: the id with its namespace, a number for its status, a row in both views',
    source: 'common/scala/.../core/entity/WhiskActivation.scala',
    needs,
    run: async (t) => {
      const name = await t.action(echo, {}, `${await t.package()}/${t.name('action')}`);
      const { activationId, start } = await t.run(name, { a: 1 });
      const id = `${t.namespace}/${activationId}`;
      const document = await documentOf(t, 'activations', id);
      expect(document).toMatchObject({
        ...{ _id: id, activationId, namespace: t.namespace, entityType: 'activation', publish: false, start },
        response: { statusCode: 0, result: { a: 1 } },
      });
      expect(document.response).not.toHaveProperty('status');
      const byTime = await rowsOf(t, 'activations', 'whisks.v2.1.0/activations', id);
      expect(byTime.map(({ key }) => key)).toEqual([[t.namespace, start]]);
      expect(byTime[0]?.value).toMatchObject({ activationId, start, statusCode: 0, name: document.name });
      const byName = await rowsOf(t, 'activations', 'whisks-filters.v2.1.1/activations', id);
      expect(byName.map(({ key }) => key)).toEqual([[`${t.namespace}/${name}`, start]]);
    },
  },
  {
    fact: 'a subject: its namespaces with their keys; its limits are a document of their own; both in a view',
    source: 'common/scala/.../core/entity/Identity.scala',
    needs,
    run: async (t) => {
      const { auth, namespace } = await t.identity({ invocationsPerMinute: 7 });
      const [uuid, key] = auth.split(':');
      const revision = { _rev: expect.any(String) };
      expect(await documentOf(t, 'subjects', namespace)).toEqual({
        ...{ _id: namespace, ...revision, subject: namespace, namespaces: [{ name: namespace, uuid, key }] },
      });
      const limitsId = `${namespace}/limits`;
      expect(await documentOf(t, 'subjects', limitsId)).toEqual({
        _id: limitsId,
        ...revision,
        invocationsPerMinute: 7,
      });
      const found = await rowsOf(t, 'subjects', 'subjects.v2.0.0/identities', namespace);
      expect(found.map((row) => row.key)).toEqual(expect.arrayContaining([[namespace], [uuid, key]]));
      for (const { value } of found) expect(value).toEqual({ _id: limitsId, namespace, uuid, key });
    },
  },
];

/** Sheet 7: documents and views in the layout of OpenWhisk's CouchDB. */
export const documentCases = table(
  'documents',
  'ansible/files/whisks_design_document_for_entities_db_v2.1.0.json',
  rows,
);
