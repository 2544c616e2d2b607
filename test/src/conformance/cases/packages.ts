import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, greet } from '../functions.js';
import { accepted, refused, valueOf } from '../trial.js';
import type { Entity } from '../trial.js';
import { escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';

const missing = 'The requested resource does not exist.';

/** The fields of a package that cases check. */
export interface Package extends Entity {
  binding: object;
  actions: { name: string; version: string; annotations: Entity['annotations'] }[];
  feeds: { name: string }[];
}

/** Expects that parameters and annotations are returned as they were put. */
function keeps(values: object): Row['run'] {
  return async (t) => {
    const name = await t.package({ parameters: pairs(values), annotations: pairs(values) });
    const { body } = await t.get(`packages/${name}`);
    expect([body.parameters, body.annotations]).toEqual([pairs(values), pairs(values)]);
  };
}

/** The request body that creates a binding. */
export function bindingOf(name: string, namespace = '_'): { binding: { namespace: string; name: string } } {
  return { binding: { namespace, name } };
}

const entities: Row[] = [
  {
    fact: 'PUT and DELETE answer 200 with the package',
    stands: [
      'WskPackageTests: allow creation and deletion of a package',
      'WskRestBasicUsageTests: create, and delete a package',
    ],
    run: async (t) => {
      const name = t.name('package');
      const created = await t.put<Package>(`packages/${name}`);
      expect([created.status, created.body.name]).toEqual([200, name]);
      expect((await t.delete(`packages/${name}`)).status).toBe(200);
      expect((await t.get(`packages/${name}`)).status).toBe(404);
    },
  },
  {
    fact: 'a package has parameters, empty ones too',
    stands: 'WskPackageTests: allow creation of a package with parameters',
    run: keeps({ p1: 'v1', p2: '' }),
  },
  {
    fact: 'an update replaces parameters where it has some',
    stands: 'WskPackageTests: allow updating a package',
    run: async (t) => {
      const name = await t.package({ parameters: pairs({ p1: 'v1', p2: '' }) });
      const parameters = pairs({ p1: 'v1', p2: 'v2', p3: 'v3' });
      expect((await t.replace(`packages/${name}`, { parameters })).parameters).toEqual(parameters);
    },
  },
  {
    fact: 'an update without them keeps parameters and publish',
    stands: 'WskRestBasicTests: create, update, get and list a package',
    run: async (t) => {
      const name = await t.package({ parameters: pairs({ a: 'A' }), publish: true });
      await t.replace(`packages/${name}`, {});
      const { body } = await t.get(`packages/${name}`);
      expect(body).toMatchObject({ version: '0.0.2', publish: true, parameters: pairs({ a: 'A' }) });
      expect(accepted(await t.get<Entity[]>('packages?limit=200')).some((row) => row.name === name)).toBe(true);
    },
  },
  {
    fact: 'GET lists actions with their annotations, and feeds apart',
    stands: 'WskRestBasicTests: create, and get a package summary',
    run: async (t) => {
      const described = { description: 'of it', parameters: [{ name: 'paramName1', description: 'of the parameter' }] };
      const name = await t.package({ annotations: pairs(described) });
      await t.action(echo, { annotations: { description: 'of the action' } }, `${name}/first`);
      await t.action(echo, { annotations: { feed: true } }, `${name}/source`);
      const { body } = await t.get<Package>(`packages/${name}`);
      expect(body).toMatchObject({ name, namespace: t.namespace, annotations: pairs(described), binding: {} });
      expect(body.actions).toEqual([{ name: 'first', version: '0.0.1', annotations: expect.any(Array) }]);
      expect(body.actions[0]?.annotations).toEqual(
        expect.arrayContaining(pairs({ description: 'of the action', 'provide-api-key': false })),
      );
      expect(valueOf(body.actions[0]?.annotations ?? [], 'exec')).toMatch(/^nodejs:/);
      expect(body.feeds.map((feed) => feed.name)).toEqual(['source']);
    },
  },
  {
    fact: 'names may contain spaces',
    stands: 'WskRestBasicTests: create a package with a name that contains spaces',
    run: async (t) => {
      const name = t.name('package with spaces');
      await t.replace(`packages/${name}`);
      expect((await t.get(`packages/${name}`)).body.name).toBe(name);
    },
  },
  {
    fact: 'GET has these fields',
    stands: 'WskRestBasicTests: create a package, and get its individual fields',
    run: async (t) => {
      const name = await t.package({ parameters: pairs({ payload: 'test' }) });
      expect((await t.get(`packages/${name}`)).body).toEqual({
        namespace: t.namespace,
        name,
        version: '0.0.1',
        publish: false,
        annotations: [],
        parameters: pairs({ payload: 'test' }),
        binding: {},
        actions: [],
        feeds: [],
        updated: expect.any(Number),
      });
    },
  },
  {
    fact: 'parameters and annotations are any JSON',
    stands: 'WskRestBasicUsageTests: create, and get a package to verify parameter and annotation parsing',
    run: keeps(jsonValues),
  },
  {
    fact: 'their keys may contain spaces',
    stands: 'WskRestBasicUsageTests: create, and get a package to verify file parameter and annotation parsing',
    run: keeps(fileValues),
  },
  {
    fact: 'their keys and values may contain what JSON escapes',
    stands: 'WskRestBasicUsageTests: create a package with the proper parameter and annotation escapes',
    run: keeps(escapedValues),
  },
];

const refusals: Row[] = [
  {
    fact: 'PUT of a package that exists: 409',
    stands: 'WskRestBasicTests: reject creation of duplication packages',
    run: async (t) => refused(await t.put(`packages/${await t.package()}`), 409, 'resource already exists'),
  },
  {
    fact: 'DELETE of no package: 404',
    stands: 'WskRestBasicTests: reject delete of package that does not exist',
    run: async (t) => refused(await t.delete('packages/nonexistent'), 404, missing),
  },
  {
    fact: 'GET of no package of the own: 404 with its name',
    stands: 'WskRestBasicTests: reject get of package that does not exist',
    run: async (t) => {
      const text = `The requested resource '${t.namespace}/nonexistent' does not exist.`;
      refused(await t.get('packages/nonexistent'), 404, text);
    },
  },
  {
    fact: 'the name default is taken: 400',
    run: async (t) => refused(await t.put('packages/default'), 400, "Package name 'default' is reserved."),
  },
  {
    fact: 'the actions of a package are listed at its path with a slash at the end, which has no other method: 404',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const path = `actions/${await t.package()}/`;
      expect((await t.get(path)).status).toBe(200);
      const body = { exec: { kind: 'nodejs:default', code: 'function main() {}' } };
      for (const reply of [await t.put(path, body), await t.post(path, {}), await t.delete(path)])
        refused(reply, 404, 'The requested resource could not be found.');
    },
  },
  {
    fact: 'a package is not invoked: 405',
    run: async (t) => expect((await t.post(`packages/${await t.package()}`, {})).status).toBe(405),
  },
  {
    fact: 'an action into a package that is not there: 404',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const body = { exec: { kind: 'nodejs:default', code: echo } };
      refused(await t.put('actions/nonexistent/action', body), 404, missing);
    },
  },
  {
    fact: 'DELETE of a package with actions: 409 unless forced',
    run: async (t) => {
      const name = await t.package();
      await t.action(echo, {}, `${name}/a`);
      const rest = 'Set force param or delete package contents.';
      refused(await t.delete(`packages/${name}`), 409, `Package not empty (contains 1 entity). ${rest}`);
      await t.action(echo, {}, `${name}/b`);
      refused(await t.delete(`packages/${name}`), 409, `Package not empty (contains 2 entities). ${rest}`);
      expect((await t.delete(`packages/${name}?force=true`)).status).toBe(200);
      expect((await t.get(`actions/${name}/a`)).status).toBe(404);
    },
  },
  {
    fact: 'an action taken for a package: 409; bindings to actions and to nothing: 409 and 400',
    stands: 'WskRestBasicUsageTests: report conformance error accessing action as package',
    run: async (t) => {
      const action = await t.action(greet);
      refused(await t.get(`packages/${action}`), 409, 'Resource by this name exists but is not in this collection.');
      const [name, nothing] = [t.name('package'), t.name('nothing')];
      const toAction = await t.put(`packages/${name}`, bindingOf(action));
      refused(toAction, 409, 'Cannot bind to a resource that is not a package.');
      const toNothing = await t.put(`packages/${name}`, bindingOf(nothing));
      refused(toNothing, 400, 'Binding references a package that does not exist.');
    },
  },
  {
    fact: 'a binding of a binding: 400',
    run: async (t) => {
      const bound = await t.package(bindingOf(await t.package()));
      refused(await t.put(`packages/${t.name('p')}`, bindingOf(bound)), 400, 'Cannot bind to another package binding.');
    },
  },
  {
    fact: 'a package is not made a binding: 409',
    run: async (t) => {
      const [provider, name] = [await t.package(), await t.package()];
      const reply = await t.put(`packages/${name}?overwrite=true`, bindingOf(provider));
      refused(reply, 409, 'Resource is a package and cannot be converted into a binding.');
    },
  },
  {
    fact: 'an action is not written through a binding: 400',
    source: 'core/controller/.../core/controller/PackageActions.scala',
    run: async (t) => {
      const provider = await t.package();
      await t.action(echo, {}, `${provider}/a`);
      const bound = await t.package(bindingOf(provider));
      const body = { exec: { kind: 'nodejs:default', code: echo } };
      refused(await t.put(`actions/${bound}/a`, body), 400, 'Operation not permitted on package binding.');
      refused(await t.delete(`actions/${bound}/a`), 400, 'Operation not permitted on package binding.');
    },
  },
];

/** Sheets 2 and 6: packages and bindings. */
export const packageCases = table('packages', 'core/controller/.../core/controller/Packages.scala', [
  ...entities,
  ...refusals,
]);
