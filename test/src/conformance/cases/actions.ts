import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, greet } from '../functions.js';
import { accepted, refused, valueOf } from '../trial.js';
import type { Entity } from '../trial.js';
import { escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';

/** The fields of an action that cases check. */
interface Action extends Entity {
  exec: { kind: string; code?: string; binary: boolean; image?: string; components?: string[] };
  limits: object;
}

const exec = { kind: 'nodejs:default', code: echo };

/** Expects that parameters and annotations are returned as they were put. */
function keeps(values: object): Row['run'] {
  return async (t) => {
    const name = t.name('action');
    await t.replace(`actions/${name}`, { exec, parameters: pairs(values), annotations: pairs(values) });
    const { body } = await t.get<Action>(`actions/${name}`);
    expect(body.parameters).toEqual(expect.arrayContaining(pairs(values)));
    expect(body.annotations).toEqual(expect.arrayContaining(pairs(values)));
  };
}

const life: Row[] = [
  {
    fact: 'PUT and DELETE answer 200 with the whole action, its code included',
    run: async (t) => {
      const name = t.name('action');
      const created = await t.put<Action>(`actions/${name}`, { exec });
      expect(created.status).toBe(200);
      expect(created.body).toMatchObject({ name, namespace: t.namespace, version: '0.0.1', publish: false });
      expect(created.body.exec).toEqual({ kind: expect.stringMatching(/^nodejs:\d+$/), code: echo, binary: false });
      const deleted = await t.delete<Action>(`actions/${name}`);
      expect([deleted.status, deleted.body]).toEqual([200, created.body]);
    },
  },
  {
    fact: 'GET has these fields: namespace, name, exec, parameters, limits, version, publish, annotations, updated',
    stands: [
      'WskRestBasicTests: create an action, and get its individual fields',
      'ActionSchemaTests: respond to GET /actions/samples/wordCount as documented in swagger',
    ],
    run: async (t) => {
      const name = t.name('action');
      await t.replace(`actions/${name}`, { exec, parameters: pairs({ payload: 'test' }) });
      const { body } = await t.get<Action>(`actions/${name}`);
      expect(body).toEqual({
        namespace: t.namespace,
        name,
        version: '0.0.1',
        publish: false,
        updated: expect.any(Number),
        exec: { kind: expect.stringMatching(/^nodejs:/), code: echo, binary: false },
        parameters: [{ key: 'payload', value: 'test' }],
        limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
        annotations: [
          { key: 'provide-api-key', value: false },
          { key: 'exec', value: body.exec.kind },
        ],
      });
    },
  },
  {
    fact: 'code=false leaves the code out',
    run: async (t) => {
      const { body } = await t.get<Action>(`actions/${await t.action(echo)}?code=false`);
      expect(body.exec).toEqual({ kind: expect.any(String), binary: false });
    },
  },
  {
    fact: 'an update keeps what it does not name, replaces parameters, and raises the version',
    stands: 'WskRestBasicTests: create, update, get and list an action',
    run: async (t) => {
      const name = t.name('action');
      await t.replace(`actions/${name}`, { exec, parameters: pairs({ a: 'A' }), limits: { timeout: 2000 } });
      await t.replace(`actions/${name}`, { parameters: pairs({ b: 'B' }), limits: { memory: 128 } });
      const { body } = await t.get<Action>(`actions/${name}`);
      expect(body).toMatchObject({ version: '0.0.2', publish: false, parameters: pairs({ b: 'B' }) });
      expect(body).toMatchObject({ exec: { code: echo }, limits: { timeout: 2000, memory: 128 } });
      const rows = accepted(await t.get<Action[]>('actions?limit=200'));
      expect(rows.filter((row) => row.name === name)).toHaveLength(1);
    },
  },
  {
    fact: 'a version that is given is taken',
    run: async (t) => {
      const name = t.name('action');
      await t.replace(`actions/${name}`, { exec, version: '1.2.3' });
      expect((await t.replace(`actions/${name}`, {})).version).toBe('1.2.4');
    },
  },
  {
    fact: 'names differ by case',
    stands: 'WskRestBasicTests: create the same action twice with different cases',
    run: async (t) => {
      const name = t.name('twice');
      await t.action(echo, {}, name);
      expect((await t.put(`actions/${name.toUpperCase()}`, { exec })).status).toBe(200);
    },
  },
  {
    fact: 'names may contain spaces',
    stands: 'WskRestBasicTests: create an action with a name that contains spaces',
    run: async (t) => {
      const name = t.name('action with spaces');
      await t.action(echo, {}, name);
      expect((await t.get(`actions/${name}`)).body.name).toBe(name);
    },
  },
  {
    fact: 'code may be empty',
    stands: 'WskActionTests: create an action with an empty file',
    run: async (t) => {
      expect((await t.put(`actions/${t.name('empty')}`, { exec: { ...exec, code: '' } })).status).toBe(200);
    },
  },
  {
    fact: 'code is binary where it is base64 throughout',
    source: 'common/scala/.../core/entity/Exec.scala',
    run: async (t) => {
      for (const [code, binary] of [
        ['abcd', true],
        ['abc', false],
        ['ab-d', false],
        ['', false],
      ] as const) {
        const { body } = await t.put<Action>(`actions/${t.name('action')}`, { exec: { ...exec, code } });
        expect([code, body.exec.binary]).toEqual([code, binary]);
      }
    },
  },
  {
    fact: 'an image without code has none when read',
    stands: 'WskRestBasicTests: create, and get docker action get ensure exec code is omitted',
    source: 'common/scala/.../core/entity/Exec.scala',
    run: async (t) => {
      const name = t.name('action');
      await t.replace(`actions/${name}`, { exec: { kind: 'blackbox', image: 'fake-container' } });
      const { body } = await t.get<Action>(`actions/${name}`);
      expect(body.exec).toEqual({ kind: 'blackbox', image: 'fake-container', binary: false });
    },
  },
  {
    fact: 'a copy has code, parameters and annotations of the first, in its first version',
    stands: 'WskActionTests: copy an action and ensure exec, parameters, and annotations copied',
    run: async (t) => {
      const [first, second] = [t.name('action'), t.name('copy')];
      await t.replace(`actions/${first}`, { exec, parameters: pairs({ a: 'A' }), annotations: pairs({ b: 'B' }) });
      const { body } = await t.get<Action>(`actions/${first}`);
      const copied = await t.replace<Action>(`actions/${second}`, {
        exec: body.exec,
        parameters: body.parameters,
        annotations: body.annotations,
      });
      expect(copied).toMatchObject({ exec: body.exec, parameters: body.parameters, version: '0.0.1' });
      expect(copied.annotations).toEqual(expect.arrayContaining(body.annotations));
      expect(copied.annotations).toHaveLength(body.annotations.length);
    },
  },
  {
    fact: 'a copy may have more of them',
    stands: 'WskActionTests: add new parameters and annotations while copying an action',
    run: async (t) => {
      const given = { exec, parameters: pairs({ a: 'A', n: 999 }), annotations: pairs({ b: 'B', is: true }) };
      const first = t.name('action');
      await t.replace(`actions/${first}`, given);
      const { body } = await t.get<Action>(`actions/${first}`);
      const copied = await t.replace<Action>(`actions/${t.name('copy')}`, {
        exec: body.exec,
        parameters: [...body.parameters, ...pairs({ c: 'C' })],
        annotations: [...body.annotations, ...pairs({ d: false })],
      });
      expect(copied.parameters).toEqual(pairs({ a: 'A', n: 999, c: 'C' }));
      expect(copied.annotations.filter(({ key }) => key !== 'exec')).toEqual(
        expect.arrayContaining(pairs({ b: 'B', is: true, d: false, 'provide-api-key': false })),
      );
      expect(valueOf(copied.annotations, 'exec')).toMatch(/^nodejs:/);
    },
  },
  {
    fact: 'parameters and annotations are any JSON',
    stands: 'WskRestBasicUsageTests: create, and get an action to verify parameter and annotation parsing',
    run: keeps(jsonValues),
  },
  {
    fact: 'their keys may contain spaces',
    stands: 'WskRestBasicUsageTests: create, and get an action to verify file parameter and annotation parsing',
    run: keeps(fileValues),
  },
  {
    fact: 'their keys and values may contain what JSON escapes',
    stands: 'WskRestBasicUsageTests: create an action with the proper parameter and annotation escapes',
    run: keeps(escapedValues),
  },
];

const missing = 'The requested resource does not exist.';

const conflicts: Row[] = [
  {
    fact: 'PUT of an action that exists: 409',
    stands: 'WskRestBasicTests: reject create of an action that already exists',
    run: async (t) =>
      refused(await t.put(`actions/${await t.action(greet)}`, { exec }), 409, 'resource already exists'),
  },
  {
    fact: 'PUT of an action whose name a trigger holds: 409',
    stands: 'WskRestBasicTests: reject creating duplicate entity',
    run: async (t) => {
      const name = t.name('duplicate');
      await t.replace(`triggers/${name}`);
      const reply = await t.put(`actions/${name}`, { exec });
      refused(reply, 409, 'Resource by this name exists but is not in this collection.');
    },
  },
  {
    fact: 'DELETE in the wrong collection: 409',
    stands: 'WskRestBasicTests: reject deleting entity in wrong collection',
    run: async (t) => {
      const name = t.name('crossed');
      await t.replace(`triggers/${name}`);
      refused(await t.delete(`actions/${name}`), 409, 'Resource by this name exists but is not in this collection.');
    },
  },
  {
    fact: 'DELETE of no action: 404',
    stands: 'WskRestBasicTests: reject delete of action that does not exist',
    run: async (t) => refused(await t.delete('actions/nonexistent'), 404, missing),
  },
  {
    fact: 'invocation of no action: 404',
    stands: 'WskRestBasicTests: reject invocation of action that does not exist',
    run: async (t) => refused(await t.post('actions/nonexistent', {}), 404, missing),
  },
  {
    fact: 'GET of no action: 404',
    stands: 'WskRestBasicTests: reject get of an action that does not exist',
    run: async (t) => refused(await t.get('actions/nonexistent'), 404, missing),
  },
];

/** Sheet 2: actions as entities. */
export const actionCases = table('actions', 'core/controller/.../core/controller/Actions.scala', [
  ...life,
  ...conflicts,
]);
