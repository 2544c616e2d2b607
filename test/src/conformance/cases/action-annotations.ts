import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Entity, Trial } from '../trial.js';
import { pairs } from './json-arguments.js';

const exec = { kind: 'nodejs:default', code: echo };

async function annotationsAfter(t: Trial, ...bodies: object[]): Promise<Entity['annotations']> {
  const name = t.name('action');
  for (const body of bodies) await t.replace(`actions/${name}`, body);
  return (await t.get(`actions/${name}`)).body.annotations.filter(({ key }) => key !== 'exec');
}

const rows: Row[] = [
  {
    fact: 'annotations come back in the order that they were given in, those of the platform after them',
    stands: 'WskRestBasicTests: create, and get an action summary',
    run: async (t) => {
      const described = { description: 'of the action', parameters: [{ name: 'paramName1', description: 'of it' }] };
      const after = await annotationsAfter(t, { exec, annotations: pairs(described) });
      expect(after).toEqual(pairs({ ...described, 'provide-api-key': false }));
    },
  },
  {
    fact: 'an update adds annotations to those that are there',
    stands: 'WskActionTests: not delete existing annotations when updating action with new annotation',
    run: async (t) => {
      const after = await annotationsAfter(
        t,
        { exec, annotations: pairs({ key1: 'value1', key2: 'value2' }) },
        { exec, annotations: pairs({ key3: 'value3', key4: 'value4' }) },
        { exec },
      );
      const all = { key1: 'value1', key2: 'value2', key3: 'value3', key4: 'value4', 'provide-api-key': false };
      expect(after).toEqual(expect.arrayContaining(pairs(all)));
    },
  },
  {
    fact: 'delAnnotations takes some away',
    stands: 'WskRestBasicUsageTests: delete the given annotations using delAnnotations',
    run: async (t) => {
      const after = await annotationsAfter(
        t,
        { exec, annotations: pairs({ key1: 'value1', key2: 'value2' }) },
        { exec, delAnnotations: ['key1'] },
      );
      expect(after).toEqual(pairs({ key2: 'value2', 'provide-api-key': false }));
    },
  },
  {
    fact: 'provide-api-key is false unless given, when the action is created',
    run: async (t) => {
      expect(await annotationsAfter(t, { exec, annotations: pairs({ 'provide-api-key': true }) })).toEqual(
        pairs({ 'provide-api-key': true }),
      );
      const deleted = await annotationsAfter(t, { exec }, { exec, delAnnotations: ['provide-api-key'] });
      expect(deleted).toEqual([]);
    },
  },
  {
    fact: 'annotations of web actions are kept as they are',
    stands: 'WskRestBasicUsageTests: ensure --web flags set the proper annotations',
    run: async (t) => {
      for (const [exported, raw] of [
        [true, false],
        [true, true],
        [false, false],
      ]) {
        const given = { 'web-export': exported, 'raw-http': raw, final: exported };
        expect(await annotationsAfter(t, { exec, annotations: pairs(given) })).toEqual(
          expect.arrayContaining(pairs({ ...given, 'provide-api-key': false })),
        );
      }
    },
  },
  {
    fact: 'an update of an action that does not exist creates it',
    stands: 'WskRestBasicUsageTests: ensure action update creates an action with --web flag',
    run: async (t) => {
      const given = { 'web-export': true, 'raw-http': false, final: true };
      const created = await t.put(`actions/${t.name('action')}?overwrite=true`, {
        exec,
        annotations: pairs(given),
      });
      expect([created.status, created.body.version]).toEqual([200, '0.0.1']);
      expect(valueOf(created.body.annotations, 'exec')).toMatch(/^nodejs:/);
      expect(created.body.annotations).toHaveLength(5);
    },
  },
];

/** Annotations of actions. */
export const actionAnnotationCases = table('annotations', 'core/controller/.../core/controller/Actions.scala', rows);
