import { expect } from '@jest/globals';
import { expectComponents } from '../compositions.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { conductor, echo, increment } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Activation, Trial } from '../trial.js';
import { bindingOf } from './packages.js';

const annotations = { conductor: true };

/** Runs a composition; expects its result, its status and the number of its activations. */
async function composes(t: Trial, name: string, given: object, result: object, count: number): Promise<Activation> {
  const record = await t.run(name, given);
  const failed = 'error' in result;
  expect(record.response).toMatchObject({ status: failed ? 'application error' : 'success', success: !failed });
  expect(record.response.result).toEqual(result);
  await expectComponents(t, record, count);
  return record;
}

/**
 * Runs that end after the conductor, because its answer names no action. If the answer has `params`, they alone are the
 * result.
 */
async function endsAtOnce(t: Trial, name: string): Promise<Activation[]> {
  const state = 'this is a test';
  return [
    await composes(t, name, { payload: state, state }, { payload: state, state }, 1),
    await composes(t, name, { error: state }, { error: state }, 1),
    await composes(t, name, { params: { payload: state }, result: state, state }, { payload: state }, 1),
  ];
}

const rows: Row[] = [
  {
    fact: 'no action in the answer ends the composition',
    stands: 'WskConductorTests: invoke a conductor action with no continuation',
    run: async (t) => {
      const [record] = await endsAtOnce(t, await t.action(echo, { annotations }));
      expect(valueOf(record?.annotations ?? [], 'kind')).toBe('sequence');
      expect(valueOf(record?.annotations ?? [], 'conductor')).toBe(true);
    },
  },
  {
    fact: 'an action that is none is an error handed back to the conductor',
    stands: 'WskConductorTests: invoke a conductor action with an invalid continuation',
    run: async (t) => {
      const name = await t.action(echo, { annotations });
      const invalid = 'Failed to parse action name from json value "invalid#Action" during composition.';
      await composes(t, name, { payload: 'x', action: 'invalid#Action' }, { error: invalid }, 2);
      const missing = `Failed to resolve action with name '${t.namespace}/missingAction' during composition.`;
      await composes(t, name, { payload: 'x', action: 'missingAction' }, { error: missing }, 2);
    },
  },
  {
    fact: 'actions are run in turn, the state kept between',
    stands: 'WskConductorTests: invoke a conductor action with a continuation',
    run: async (t) => {
      const name = await t.action(conductor, { annotations });
      const action = await t.action(increment, { limits: { memory: 257 } });
      await composes(t, name, { action, n: 1 }, { n: 2 }, 3);
      await composes(t, name, { action }, { error: 'missing parameter' }, 3);
      const blocking = await t.invoke(name, { action, n: 1 });
      expect([blocking.status, blocking.body.response.result]).toEqual([200, { n: 2 }]);
      await composes(t, name, { action, state: { witness: 42 }, n: 1 }, { n: 2, witness: 42 }, 3);
      await composes(t, name, { action, state: { action }, n: 1 }, { n: 3 }, 5);
    },
  },
  {
    fact: 'compositions within compositions are one entry each',
    stands: 'WskConductorTests: invoke nested conductor actions',
    run: async (t) => {
      const name = await t.action(conductor, { annotations });
      const action = await t.action(increment, { limits: { memory: 255 } });
      const outer = await composes(t, name, { action: name, params: { action }, n: 1 }, { n: 2 }, 3);
      const inner = await t.record(outer.logs[1] ?? '');
      expect(inner.response.result).toEqual({ n: 2 });
      await expectComponents(t, inner, 3);
      const blocking = await t.invoke(name, { action: name, params: { action }, n: 1 });
      expect([blocking.status, blocking.body.response.result]).toEqual([200, { n: 2 }]);
      await composes(t, name, { action: name, state: { action }, params: { action }, n: 1 }, { n: 3 }, 5);
      const deeper = { action: name, state: { action }, params: { action } };
      await composes(t, name, { action: name, state: { action }, params: deeper, n: 1 }, { n: 4 }, 5);
    },
  },
  {
    fact: 'a conductor in a bound package: its record names the binding',
    stands: 'WskConductorTests: invoke a conductor action in a package binding',
    run: async (t) => {
      const provider = await t.package();
      const bound = await t.package(bindingOf(provider));
      await t.action(echo, { annotations }, `${provider}/echo`);
      for (const record of await endsAtOnce(t, `${bound}/echo`))
        expect(valueOf(record.annotations, 'binding')).toBe(`${t.namespace}/${bound}`);
    },
  },
  {
    fact: 'a composition of more components than may be is told so, and fails',
    run: async (t) => {
      const step = await t.action(echo);
      const code = `function main({ error }) { return error ? { error } : { action: '${step}', state: {} }; }`;
      const { user } = t;
      const { body } = await user.send<{ limits: { sequence_length: number } }>('GET', '/');
      const most = body.limits.sequence_length;
      const error = 'Too many actions in the composition.';
      await composes(t, await t.action(code, { annotations }), {}, { error }, 2 * most + 2);
    },
  },
  {
    fact: "a component that is not the caller's to use is an error handed back",
    run: async (t) => {
      const name = await t.action(echo, { annotations });
      const action = `/${t.other.namespace}/private`;
      const record = await t.run(name, { action });
      expect(record.response.result.error).toMatch(/^Failed (entitlement check for|to resolve) action with name/);
    },
  },
  {
    fact: 'params and state that are no objects become value and state',
    run: async (t) => {
      const name = await t.action('function main() { return { params: 7 }; }', { annotations });
      await composes(t, name, {}, { value: 7 }, 1);
    },
  },
];

/** Sheet 4: conductors. */
export const conductorCases = table(
  'conductors',
  'core/controller/.../core/controller/actions/PrimitiveActions.scala',
  rows,
);
