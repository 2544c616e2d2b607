import { expect } from '@jest/globals';
import { until } from '../../support/running-platform.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, echo, greet } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Activation, Entity, Trial } from '../trial.js';
import { escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';

const missing = 'The requested resource does not exist.';

/** Expects that parameters and annotations are returned as they were put. */
function keeps(values: object): Row['run'] {
  return async (t) => {
    const name = t.name('trigger');
    await t.replace(`triggers/${name}`, { parameters: pairs(values), annotations: pairs(values) });
    const { body } = await t.get(`triggers/${name}`);
    expect([body.parameters, body.annotations]).toEqual([pairs(values), pairs(values)]);
  };
}

/** The outcomes of rules in the record of a fire. */
function outcomes(record: Activation): Record<string, unknown>[] {
  return record.logs.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A trigger with two rules that lead to different actions. */
async function twoRules(t: Trial): Promise<{ trigger: string; rules: string[]; actions: string[] }> {
  const actions = [await t.action(greet), await t.action(countWords)];
  const { trigger, rule } = await t.linked(actions[0] ?? '');
  const second = t.name('rule');
  await t.replace(`rules/${second}`, { trigger: `/_/${trigger}`, action: `/_/${actions[1]}` });
  return { trigger, rules: [rule, second], actions };
}

const entities: Row[] = [
  {
    fact: 'an update keeps parameters; GET names the rules; a fire is recorded with what its rules did',
    stands: 'WskRestBasicTests: create, update, get, fire and list trigger',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger, rule } = await t.linked(action, { parameters: pairs({ a: 'A' }) });
      await t.replace(`triggers/${trigger}`, {});
      const { body } = await t.get<Entity & { rules: object }>(`triggers/${trigger}`);
      expect(body).toMatchObject({ version: '0.0.2', parameters: pairs({ a: 'A' }), publish: false });
      expect(body.rules).toEqual({
        [`${t.namespace}/${rule}`]: { action: { name: action, path: t.namespace }, status: 'active' },
      });
      const record = await t.fire(trigger, { t: 'T' });
      expect(record.response).toMatchObject({ status: 'success', success: true, result: { t: 'T' } });
      expect(record).not.toHaveProperty('end');
      expect(record).not.toHaveProperty('duration');
      expect(outcomes(record)).toEqual([
        {
          statusCode: 0,
          success: true,
          activationId: expect.stringMatching(/^[0-9a-f]{32}$/),
          rule: `${t.namespace}/${rule}`,
          action: `${t.namespace}/${action}`,
        },
      ]);
      const rows = accepted(await t.get<Entity[]>('triggers?limit=200'));
      expect(rows.some((row) => row.name === trigger)).toBe(true);
    },
  },
  {
    fact: 'annotations come back as they were given',
    stands: 'WskRestBasicTests: create, and get a trigger summary',
    run: keeps({ description: 'Trigger description', parameters: [{ name: 'paramName1', description: 'of it' }] }),
  },
  {
    fact: 'names may contain spaces',
    stands: 'WskRestBasicTests: create a trigger with a name that contains spaces',
    run: async (t) => {
      const name = t.name('trigger with spaces');
      await t.replace(`triggers/${name}`);
      expect((await t.get(`triggers/${name}`)).body.name).toBe(name);
    },
  },
  {
    fact: 'GET has these fields: namespace, name, version, publish, annotations, parameters, limits, updated',
    stands: 'WskRestBasicTests: create a trigger, and get its individual fields',
    run: async (t) => {
      const name = t.name('trigger');
      await t.replace(`triggers/${name}`, { parameters: pairs({ payload: 'test' }) });
      expect((await t.get(`triggers/${name}`)).body).toEqual({
        namespace: t.namespace,
        name,
        version: '0.0.1',
        publish: false,
        annotations: [],
        parameters: pairs({ payload: 'test' }),
        limits: {},
        updated: expect.any(Number),
      });
    },
  },
  {
    fact: 'parameters and annotations are any JSON',
    stands: 'WskRestBasicUsageTests: create, and get a trigger to verify parameter and annotation parsing',
    run: keeps(jsonValues),
  },
  {
    fact: 'their keys may contain spaces',
    stands: 'WskRestBasicUsageTests: create, and get a trigger to verify file parameter and annotation parsing',
    run: keeps(fileValues),
  },
  {
    fact: 'their keys and values may contain what JSON escapes',
    stands: 'WskRestBasicUsageTests: create a trigger with the proper parameter and annotation escapes',
    run: keeps(escapedValues),
  },
  {
    fact: 'PUT of a trigger that exists: 409',
    stands: 'WskRestBasicTests: reject creation of duplicate triggers',
    run: async (t) => {
      const name = t.name('trigger');
      await t.replace(`triggers/${name}`);
      refused(await t.put(`triggers/${name}`), 409, 'resource already exists');
    },
  },
  {
    fact: 'DELETE of no trigger: 404',
    stands: 'WskRestBasicTests: reject delete of trigger that does not exist',
    run: async (t) => refused(await t.delete('triggers/nonexistent'), 404, missing),
  },
  {
    fact: 'GET of no trigger: 404',
    stands: 'WskRestBasicTests: reject get of trigger that does not exist',
    run: async (t) => refused(await t.get('triggers/nonexistent'), 404, missing),
  },
  {
    fact: 'firing no trigger: 404',
    stands: 'WskRestBasicTests: reject firing of a trigger that does not exist',
    run: async (t) => refused(await t.post('triggers/nonexistent', {}), 404, missing),
  },
  {
    fact: 'a feed annotation that is no name of an action: 400',
    run: async (t) => {
      const reply = await t.put(`triggers/${t.name('trigger')}`, { annotations: pairs({ feed: 'a/$b' }) });
      refused(reply, 400, 'Feed name is not valid');
    },
  },
];

const fires: Row[] = [
  {
    fact: 'without rules: 204, nothing recorded',
    run: async (t) => {
      const name = t.name('trigger');
      await t.replace(`triggers/${name}`);
      const { status, text, headers } = await t.post(`triggers/${name}`, { a: 1 });
      expect([status, text, headers['x-openwhisk-activation-id']]).toEqual([204, '', undefined]);
    },
  },
  {
    fact: 'a payload is the result of the record',
    stands: 'WskRestBasicTests: create, and fire a trigger using a parameter file',
    run: async (t) => {
      const { trigger } = await t.linked(await t.action(echo));
      expect((await t.fire(trigger, { payload: 'test' })).response.result).toEqual({ payload: 'test' });
    },
  },
  {
    fact: 'no payload is an empty result',
    stands: 'WskRestBasicTests: create, and fire a trigger to ensure result is empty',
    run: async (t) => {
      const { trigger } = await t.linked(await t.action(echo));
      expect((await t.fire(trigger)).response.result).toEqual({});
    },
  },
  {
    fact: 'a rule whose action is gone is reported, the others run',
    stands: 'WskRestBasicTests: create and fire a trigger with a rule whose action has been deleted',
    run: async (t) => {
      const { trigger, rules, actions } = await twoRules(t);
      await t.delete(`actions/${actions[1]}`);
      const results = outcomes(await t.fire(trigger));
      const about = (at: number) => ({ rule: `${t.namespace}/${rules[at]}`, action: `${t.namespace}/${actions[at]}` });
      expect(results).toEqual([
        { statusCode: 0, success: true, activationId: expect.any(String), ...about(0) },
        { statusCode: 1, success: false, error: missing, ...about(1) },
      ]);
    },
  },
  {
    fact: 'an inactive rule is reported, the others run',
    stands: 'WskRestBasicTests: create and fire a trigger having an active rule and an inactive rule',
    run: async (t) => {
      const { trigger, rules, actions } = await twoRules(t);
      await t.post(`rules/${rules[1]}`, { status: 'inactive' });
      const [rule, action] = [`${t.namespace}/${rules[1]}`, `${t.namespace}/${actions[1]}`];
      const results = outcomes(await t.fire(trigger));
      expect(results[0]).toMatchObject({ statusCode: 0, success: true });
      expect(results[1]).toEqual({
        statusCode: 1,
        success: false,
        error: `Rule '${rule}' is inactive, action '${action}' was not activated.`,
        rule,
        action,
      });
    },
  },
  {
    fact: 'the record has the fields of an activation but end, duration and annotations',
    stands: 'WskRestBasicTests: create a trigger, and fire a trigger to get its individual fields from an activation',
    run: async (t) => {
      const { trigger } = await t.linked(await t.action(echo));
      const { activationId, ...record } = await t.fire(trigger);
      expect(activationId).toMatch(/^[0-9a-f]{32}$/);
      expect(record).toEqual({
        namespace: t.namespace,
        name: trigger,
        version: '0.0.1',
        publish: false,
        subject: expect.any(String),
        start: expect.any(Number),
        response: expect.objectContaining({ result: {} }),
        logs: [expect.any(String)],
        annotations: [],
      });
    },
  },
  {
    fact: "an action is given the trigger's parameters, the request's headers, then the payload",
    stands: 'WskRestBasicUsageTests: forward headers as parameters to the associated action',
    run: async (t) => {
      const { trigger } = await t.linked(await t.action(echo), { parameters: pairs({ a: 1, b: 1 }) });
      const fired = await t.user.send<{ activationId: string }>('POST', `/api/v1/namespaces/_/triggers/${trigger}`, {
        headers: { foo: 'Bar' },
        body: { b: 2 },
      });
      const [outcome] = outcomes(await t.record(fired.body.activationId));
      const { response, cause } = await t.record(String(outcome?.activationId));
      expect(response.result).toMatchObject({ a: 1, b: 2, __ow_headers: { foo: 'Bar' } });
      expect(cause).toBeUndefined();
    },
  },
  {
    fact: 'deleting a trigger leaves its rules, which cannot be activated then',
    source: 'core/controller/.../core/controller/Rules.scala',
    run: async (t) => {
      const { trigger, rule } = await t.linked(await t.action(echo));
      await t.post(`rules/${rule}`, { status: 'inactive' });
      await t.delete(`triggers/${trigger}`);
      await until('the rule is there', async () => (await t.get(`rules/${rule}`)).status === 200);
      const reply = await t.post(`rules/${rule}`, { status: 'active' });
      refused(reply, 404, 'Only rules with existing triggers can be activated');
    },
  },
];

/** Sheets 2 and 6: triggers. */
export const triggerCases = table('triggers', 'core/controller/.../core/controller/Triggers.scala', [
  ...entities,
  ...fires,
]);
