import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { context, echo, greet } from '../functions.js';
import { accepted, refused, valueOf } from '../trial.js';
import type { Entity, Trial } from '../trial.js';
import { pairs } from './json-arguments.js';
import { bindingOf } from './packages.js';

const exec = { kind: 'nodejs:default', code: echo };
const notAuthorized = (what: string): string => `The supplied authentication is not authorized to access '${what}'.`;

/** Creates a package of the user with the parameter a=A and an action `sample`. */
async function sample(t: Trial, publish = true): Promise<{ name: string; path: string }> {
  const name = await t.package({ publish, parameters: pairs({ a: 'A' }) });
  await t.action(greet, {}, `${name}/sample`);
  return { name, path: `${t.namespace}/actions/${name}/sample` };
}

const sequenceOf = (...components: string[]) => ({ exec: { kind: 'sequence', components } });

/** Names of the user's packages that the other identity can list. */
async function seen(t: Trial): Promise<string[]> {
  const rows = accepted(await t.other.api<Entity[]>('GET', `${t.namespace}/packages?limit=200`));
  return rows.map((row) => row.name);
}

const rows: Row[] = [
  {
    fact: "a private action is not others' to read, update, delete, invoke or put in a sequence: 403",
    stands: 'WskRestEntitlementTests: not allow unauthorized subject to operate on private action',
    run: async (t) => {
      const name = await t.action(greet);
      const path = `${t.namespace}/actions/${name}`;
      for (const [method, query, body] of [
        ['GET', '', undefined],
        ['PUT', '?overwrite=true', { exec }],
        ['DELETE', '', undefined],
        ['POST', '', {}],
      ] as const)
        refused(await t.other.api(method, path + query, body), 403, notAuthorized(`${t.namespace}/${name}`));
      const sequence = sequenceOf(`/${t.namespace}/${name}`);
      refused(await t.put(`actions/${t.name('s')}`, sequence, t.other), 403, notAuthorized(`${t.namespace}/${name}`));
    },
  },
  {
    fact: "an action in another's shared package is read, not deleted",
    stands: 'WskRestEntitlementTests: reject deleting action in shared package not owned by authkey',
    run: async (t) => {
      const { path, name } = await sample(t);
      expect((await t.other.api('GET', path)).status).toBe(200);
      refused(await t.other.api('DELETE', path), 403, notAuthorized(`${t.namespace}/${name}/sample`));
    },
  },
  {
    fact: "no action is created in another's namespace or shared package",
    stands: 'WskRestEntitlementTests: reject create action in shared package not owned by authkey',
    run: async (t) => {
      const { name } = await sample(t);
      for (const action of ['notallowed', `${name}/notallowed`])
        refused(
          await t.other.api('PUT', `${t.namespace}/actions/${action}`, { exec }),
          403,
          notAuthorized(`${t.namespace}/${action}`),
        );
    },
  },
  {
    fact: 'nor updated',
    stands: 'WskRestEntitlementTests: reject update action in shared package not owned by authkey',
    run: async (t) => {
      const { path } = await sample(t);
      expect((await t.other.api('PUT', `${path}?overwrite=true`, {})).status).toBe(403);
    },
  },
  {
    fact: 'shared packages are listed to others',
    stands: 'WskRestEntitlementTests: list shared packages',
    run: async (t) => {
      const { name } = await sample(t);
      expect(await seen(t)).toContain(name);
    },
  },
  {
    fact: 'as soon as they are shared',
    stands: 'WskRestEntitlementTests: list shared packages when package is turned into public',
    run: async (t) => {
      const name = await t.package();
      expect(await seen(t)).not.toContain(name);
      await t.replace(`packages/${name}`, { publish: true });
      expect(await seen(t)).toContain(name);
    },
  },
  {
    fact: 'private packages are not',
    stands: 'WskRestEntitlementTests: not list private packages',
    run: async (t) => {
      const name = await t.package();
      expect(await seen(t)).not.toContain(name);
    },
  },
  {
    fact: 'a package of a namespace that there is not: 403',
    stands: 'WskRestEntitlementTests: reject getting package from invalid namespace',
    run: async (t) =>
      refused(await t.user.api('GET', 'whisk.systsdf/packages/utils'), 403, notAuthorized('whisk.systsdf/utils')),
  },
  {
    fact: "a package that another's namespace lacks: 403",
    stands: 'WskRestEntitlementTests: reject getting invalid package from valid namespace',
    run: async (t) => {
      const ns = t.other.namespace;
      refused(await t.user.api('GET', `${ns}/packages/utilssss`), 403, notAuthorized(`${ns}/utilssss`));
    },
  },
  {
    fact: 'actions of shared packages are listed to others',
    stands: 'WskRestEntitlementTests: list shared package actions',
    run: async (t) => {
      const { name } = await sample(t);
      const list = accepted(await t.other.api<Entity[]>('GET', `${t.namespace}/actions/${name}/`));
      expect(list.map((row) => `${row.namespace}/${row.name}`)).toEqual([`${t.namespace}/${name}/sample`]);
    },
  },
  {
    fact: "a shared package is bound by others; the binding annotation is the server's",
    stands: 'WskRestEntitlementTests: create a package binding',
    run: async (t) => {
      const { name } = await sample(t);
      const bound = t.name('binding');
      const annotations = pairs({ a: 'A', binding: 'xxx' });
      await t.replace(`packages/${bound}`, { ...bindingOf(name, t.namespace), annotations }, t.other);
      const { body } = await t.get(`packages/${bound}`, t.other);
      expect(valueOf(body.annotations, 'a')).toBe('A');
      expect(valueOf(body.annotations, 'binding')).toEqual({ namespace: t.namespace, name });
    },
  },
  {
    fact: 'a private package is not bound by others: 403',
    stands: 'WskRestEntitlementTests: not create a package binding for private package',
    run: async (t) => {
      const { name } = await sample(t, false);
      const reply = await t.put(`packages/${t.name('binding')}`, bindingOf(name, t.namespace), t.other);
      refused(reply, 403, notAuthorized(`${t.namespace}/${name}`));
    },
  },
  {
    fact: "an action of a shared package is read with the package's parameters, and invoked",
    stands: 'WskRestEntitlementTests: get and invoke an action from package',
    run: async (t) => {
      const { path, name } = await sample(t);
      const { body } = await t.other.api<Entity>('GET', path);
      expect(body).toMatchObject({ name: 'sample', parameters: pairs({ a: 'A' }), limits: expect.any(Object) });
      expect((await t.run(`/${t.namespace}/${name}/sample`, {}, t.other)).response.success).toBe(true);
    },
  },
  {
    fact: 'it may be part of a sequence of others',
    stands: 'WskRestEntitlementTests: invoke an action sequence from package',
    run: async (t) => {
      const { name } = await sample(t);
      const sequence = t.name('sequence');
      await t.replace(`actions/${sequence}`, sequenceOf(`/${t.namespace}/${name}/sample`), t.other);
      expect((await t.run(sequence, {}, t.other)).response.success).toBe(true);
    },
  },
  {
    fact: 'a sequence whose component is shared no longer is not invoked: 403',
    stands:
      'WskRestEntitlementTests: not allow invoke an action sequence with more than one component from package after entitlement change',
    run: async (t) => {
      const [first, second] = [await sample(t), await sample(t)];
      const sequence = t.name('sequence');
      const components = [first, second].map(({ name }) => `/${t.namespace}/${name}/sample`);
      await t.replace(`actions/${sequence}`, sequenceOf(...components), t.other);
      await t.replace(`packages/${second.name}`, { publish: false });
      expect((await t.post(`actions/${sequence}`, {}, t.other)).status).toBe(403);
    },
  },
  {
    fact: "a function of another's is told the caller's namespace",
    stands: "WskRestEntitlementTests: invoke a packaged action not owned by the subject to get the subject's namespace",
    run: async (t) => {
      const shared = await t.package({ publish: true });
      await t.action(context, {}, `${shared}/where`);
      const { response } = await t.run(`/${t.namespace}/${shared}/where`, {}, t.other);
      expect(response).toMatchObject({ success: true, result: { namespace: t.other.namespace } });
    },
  },
  {
    fact: 'a feed that does not start: its invocation fails, and the client removes the trigger',
    stands: 'WskRestEntitlementTests: not create a trigger with timeout error when feed fails to initialize',
    run: async (t) => {
      const shared = await t.package({ publish: true });
      await t.action('', {}, `${shared}/feed`);
      const trigger = t.name('trigger');
      const feed = `/${t.namespace}/${shared}/feed`;
      await t.replace(`triggers/${trigger}`, { annotations: pairs({ feed }) }, t.other);
      const given = { lifecycleEvent: 'CREATE', triggerName: `/_/${trigger}`, authKey: t.other.auth };
      const invoked = await t.other.api('POST', `${t.namespace}/actions/${shared}/feed?blocking=true`, given);
      expect(invoked.status).toBe(502);
      expect((await t.delete(`triggers/${trigger}`, t.other)).status).toBe(200);
      expect((await t.get(`triggers/${trigger}`, t.other)).status).toBe(404);
    },
  },
  {
    fact: 'a binding is never shared',
    source: 'core/controller/.../core/entitlement/PackageCollection.scala',
    run: async (t) => {
      const bound = await t.package({ ...bindingOf(await t.package()), publish: true });
      refused(
        await t.other.api('GET', `${t.namespace}/packages/${bound}`),
        403,
        notAuthorized(`${t.namespace}/${bound}`),
      );
    },
  },
];

/** Sheets 2 and 6: ownership of entities, and access of other identities. */
export const entitlementCases = table('entitlement', 'core/controller/.../core/entitlement/Entitlement.scala', rows);
