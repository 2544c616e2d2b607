import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Entity } from '../trial.js';

const malformed = (parameter: string, detail: string): string =>
  `The query parameter '${parameter}' was malformed:\n${detail}`;

const collections = ['actions', 'triggers', 'rules', 'packages', 'activations'] as const;

/** A query that every collection refuses. */
function refusal(fact: string, query: string, parameter: string, detail: (collection: string) => string): Row {
  return {
    fact,
    run: async (t) => {
      for (const collection of collections)
        refused(await t.get(`${collection}?${query}`), 400, malformed(parameter, detail(collection)));
    },
  };
}

const rows: Row[] = [
  refusal(
    'limit beyond 200: 400',
    'limit=201',
    'limit',
    (collection) => `The value '201' is not in the range of 0 to 200 for ${collection}.`,
  ),
  refusal(
    'skip below 0: 400',
    'skip=-1',
    'skip',
    (collection) => `The value '-1' is not greater than or equal to 0 for ${collection}.`,
  ),
  refusal(
    'limit that is no number: 400',
    'limit=x',
    'limit',
    (collection) => `The value 'x' is not an integer for ${collection}.`,
  ),
  {
    fact: 'count=true counts, by the name of the collection',
    run: async (t) => {
      await t.action(echo);
      for (const collection of collections) {
        const counted = accepted(await t.get<Record<string, number>>(`${collection}?count=true`));
        expect(counted).toEqual({ [collection]: expect.any(Number) });
      }
      expect(accepted(await t.get(`actions?count=true&skip=100000`))).toEqual({ actions: 0 });
    },
  },
  {
    fact: 'the newest come first, skip and limit cut',
    run: async (t) => {
      const name = await t.package();
      for (const action of ['a', 'b', 'c']) {
        await t.action(echo, {}, `${name}/${action}`);
        // Times of updates have a resolution of one millisecond.
        await new Promise((done) => setTimeout(done, 2));
      }
      const names = async (query: string): Promise<string[]> =>
        accepted(await t.get<Entity[]>(`actions/${name}/${query}`)).map((row) => row.name);
      expect(await names('')).toEqual(['c', 'b', 'a']);
      expect(await names('?limit=1')).toEqual(['c']);
      expect(await names('?skip=1&limit=1')).toEqual(['b']);
      expect(await names('?limit=0')).toHaveLength(3);
    },
  },
  {
    fact: 'rows of actions: no code, no parameters',
    stands: 'ActionSchemaTests: respond to GET /actions as documented in swagger',
    source: 'common/scala/.../core/entity/WhiskAction.scala',
    run: async (t) => {
      const name = await t.package({ publish: true });
      await t.action(echo, { parameters: [{ key: 'a', value: 1 }] }, `${name}/listed`);
      expect(accepted(await t.get<Entity[]>(`actions/${name}/`))).toEqual([
        {
          namespace: `${t.namespace}/${name}`,
          name: 'listed',
          version: '0.0.1',
          publish: false,
          annotations: expect.any(Array),
          limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
          exec: { binary: false },
          updated: expect.any(Number),
        },
      ]);
    },
  },
  {
    fact: 'rows of packages have binding, false where there is none',
    source: 'common/scala/.../core/entity/WhiskPackage.scala',
    run: async (t) => {
      const provider = await t.package();
      const bound = await t.package({ binding: { namespace: '_', name: provider } });
      const list = accepted(await t.get<(Entity & { binding: unknown })[]>('packages?limit=200'));
      const bindingOf = (name: string): unknown => list.find((row) => row.name === name)?.binding;
      expect([bindingOf(provider), bindingOf(bound)]).toEqual([false, { namespace: t.namespace, name: provider }]);
    },
  },
  {
    fact: 'rows of triggers have no parameters, limits or rules; rows of rules are whole rules without status',
    source: 'common/scala/.../core/entity/WhiskTrigger.scala',
    run: async (t) => {
      const { trigger, rule } = await t.linked(await t.action(echo));
      const triggers = accepted(await t.get<Entity[]>('triggers?limit=200'));
      const rowOfTrigger = triggers.find((row) => row.name === trigger) ?? {};
      expect(Object.keys(rowOfTrigger).sort()).toEqual(
        ['annotations', 'name', 'namespace', 'publish', 'updated', 'version'].sort(),
      );
      const rules = accepted(await t.get<Entity[]>('rules?limit=200'));
      const rowOfRule = rules.find((row) => row.name === rule);
      expect(rowOfRule).toMatchObject({ trigger: { path: t.namespace, name: trigger } });
      expect(rowOfRule).not.toHaveProperty('status');
    },
  },
];

/** Sheet 2: lists of entities. */
export const listCases = table('lists', 'core/controller/.../core/controller/ApiUtils.scala', rows);
