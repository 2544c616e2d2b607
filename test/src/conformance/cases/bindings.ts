import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, logParameters } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Activation, Entity, Trial } from '../trial.js';
import { pairs } from './json-arguments.js';
import { bindingOf } from './packages.js';
import type { Package } from './packages.js';

/** A package with an action, and a binding of the package. The binding and the action have parameters. */
async function bindingWithParameters(t: Trial): Promise<{ provider: string; bound: string }> {
  const provider = await t.package({ parameters: pairs({ key1a: 'value1a', key1b: 'value1b' }) });
  const parameters = pairs({ key2a: 'value2a', key1b: 'value2b' });
  const bound = await t.package({ ...bindingOf(provider), parameters });
  await t.action(logParameters, { parameters: [{ key: 'key0', value: 'value0' }] }, `${provider}/print`);
  return { provider, bound };
}

const bindingAnnotation = (record: Activation): unknown => valueOf(record.annotations, 'binding');

const rows: Row[] = [
  {
    fact: "GET of a binding has its own parameters over the provider's",
    stands: 'WskPackageTests: allow binding of a package',
    run: async (t) => {
      const provider = await t.package({ parameters: pairs({ p1: 'v1', p2: '' }) });
      const bound = await t.package({ ...bindingOf(provider), parameters: pairs({ p2: 'v2', p3: 'v3' }) });
      const { body } = await t.get<Package>(`packages/${bound}`);
      expect(body.binding).toEqual({ namespace: t.namespace, name: provider });
      expect(body.parameters).toEqual(expect.arrayContaining(pairs({ p1: 'v1', p2: 'v2', p3: 'v3' })));
      expect(body.parameters).toHaveLength(3);
    },
  },
  {
    fact: 'parameters: package, then binding, then action, then payload',
    stands: 'WskPackageTests: perform package binds so parameters are inherited',
    source: 'common/scala/.../core/entity/WhiskAction.scala',
    run: async (t) => {
      const { provider, bound } = await bindingWithParameters(t);
      const parametersOf = async (path: string): Promise<object> =>
        Object.fromEntries((await t.get(path)).body.parameters.map(({ key, value }) => [key, value]));
      const ofPackage = { key1a: 'value1a', key1b: 'value1b' };
      const ofBinding = { ...ofPackage, key2a: 'value2a', key1b: 'value2b' };
      expect(await parametersOf(`packages/${provider}`)).toEqual(ofPackage);
      expect(await parametersOf(`packages/${bound}`)).toEqual(ofBinding);
      expect(await parametersOf(`actions/${provider}/print`)).toEqual({ ...ofPackage, key0: 'value0' });
      expect(await parametersOf(`actions/${bound}/print`)).toEqual({ ...ofBinding, key0: 'value0' });
      expect(logTexts(await t.run(`${bound}/print`, { payload: 'now' }))).toEqual([
        'key0: value0 key1a: value1a key1b: value2b key2a: value2a payload: now',
      ]);
    },
  },
  {
    fact: 'PUT and DELETE answers have no merged parameters',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const name = await t.package({ parameters: pairs({ a: 1 }) });
      const body = { exec: { kind: 'nodejs:default', code: echo } };
      expect((await t.put(`actions/${name}/x`, body)).body.parameters).toEqual([]);
      expect((await t.delete(`actions/${name}/x`)).body.parameters).toEqual([]);
    },
  },
  {
    fact: 'through a binding, the record names it',
    stands: 'WskPackageTests: contain an binding annotation if invoked action is in the package binding',
    source: 'core/controller/.../core/controller/actions/PrimitiveActions.scala',
    run: async (t) => {
      const { provider, bound } = await bindingWithParameters(t);
      const record = await t.run(`${bound}/print`);
      expect(bindingAnnotation(record)).toBe(`${t.namespace}/${bound}`);
      expect(valueOf(record.annotations, 'path')).toBe(`${t.namespace}/${provider}/print`);
    },
  },
  {
    fact: 'else it names none',
    stands: 'WskPackageTests: not contain an binding annotation if invoked action is not in the package binding',
    source: 'core/controller/.../core/controller/actions/PrimitiveActions.scala',
    run: async (t) => {
      const name = await t.package();
      const packaged = await t.action(echo, {}, `${name}/print`);
      expect(bindingAnnotation(await t.run(packaged))).toBeUndefined();
      expect(bindingAnnotation(await t.run(await t.action(echo)))).toBeUndefined();
    },
  },
  {
    fact: 'an action is called by namespace, package and name',
    stands: "WskRestBasicUsageTests: allow a 3 part Fully Qualified Name (FQN) without a leading '/'",
    run: async (t) => {
      const name = await t.package();
      await t.action(echo, {}, `${name}/action`);
      await t.linked(`${name}/action`);
      expect((await t.run(`/${t.namespace}/${name}/action`)).response.status).toBe('success');
      const { body } = await t.user.api<Entity>('GET', `${t.namespace}/actions/${name}/action`);
      expect([body.name, body.namespace]).toEqual(['action', `${t.namespace}/${name}`]);
    },
  },
];

/** Sheets 2 and 6: bindings, and the merging of parameters. */
export const bindingCases = table('bindings', 'core/controller/.../core/controller/Packages.scala', rows);
