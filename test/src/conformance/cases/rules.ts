import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { greet } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Entity, Trial } from '../trial.js';

const missing = 'The requested resource does not exist.';

interface Rule extends Entity {
  status?: string;
  trigger: { path: string; name: string };
  action: { path: string; name: string };
}

const setStatus = (t: Trial, rule: string, status: string) => t.post(`rules/${rule}`, { status });

const entities: Row[] = [
  {
    fact: 'an update raises the version',
    stands: 'WskRestBasicTests: create rule, get rule, update rule and list rule',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger, rule } = await t.linked(action);
      await t.replace(`rules/${rule}`, { trigger: `/_/${trigger}`, action: `/_/${action}` });
      const { body } = await t.get<Rule>(`rules/${rule}`);
      expect(body).toMatchObject({
        name: rule,
        version: '0.0.2',
        trigger: { name: trigger },
        action: { name: action },
      });
      expect(accepted(await t.get<Rule[]>('rules?limit=200')).some((row) => row.name === rule)).toBe(true);
    },
  },
  {
    fact: 'a new rule is active',
    stands: 'WskRestBasicTests: create rule, get rule, ensure rule is enabled by default',
    run: async (t) => {
      const { rule } = await t.linked(await t.action(greet));
      expect((await t.get<Rule>(`rules/${rule}`)).body.status).toBe('active');
    },
  },
  {
    fact: 'GET names the namespace',
    stands: "WskRestBasicTests: display a rule summary when --summary flag is used with 'wsk rule get'",
    run: async (t) => {
      const { rule } = await t.linked(await t.action(greet));
      const { body } = await t.get<Rule>(`rules/${rule}`);
      expect(body).toMatchObject({ name: rule, namespace: t.namespace, status: 'active' });
    },
  },
  {
    fact: 'GET has these fields, trigger and action as path and name',
    stands: 'WskRestBasicTests: create a rule, and get its individual fields',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger, rule } = await t.linked(action);
      expect((await t.get<Rule>(`rules/${rule}`)).body).toEqual({
        namespace: t.namespace,
        name: rule,
        version: '0.0.1',
        publish: false,
        annotations: [],
        status: 'active',
        trigger: { path: t.namespace, name: trigger },
        action: { path: t.namespace, name: action },
        updated: expect.any(Number),
      });
    },
  },
  {
    fact: 'trigger and action may be given as path and name',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger } = await t.linked(action);
      const reply = await t.put<Rule>(`rules/${t.name('rule')}`, {
        trigger: { path: '_', name: trigger },
        action: { path: '_', name: action },
      });
      expect([reply.status, reply.body.action]).toEqual([200, { path: t.namespace, name: action }]);
    },
  },
];

const refusals: Row[] = [
  {
    fact: 'PUT of a rule that exists: 409',
    stands: 'WskRestBasicTests: reject creation of duplicate rules',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger, rule } = await t.linked(action);
      const reply = await t.put(`rules/${rule}`, { trigger: `/_/${trigger}`, action: `/_/${action}` });
      refused(reply, 409, 'resource already exists');
    },
  },
  {
    fact: 'DELETE of no rule: 404',
    stands: 'WskRestBasicTests: reject delete of rule that does not exist',
    run: async (t) => refused(await t.delete('rules/nonexistent'), 404, missing),
  },
  {
    fact: 'enabling no rule: 404',
    stands: 'WskRestBasicTests: reject enable of rule that does not exist',
    run: async (t) => refused(await setStatus(t, 'nonexistent', 'active'), 404, missing),
  },
  {
    fact: 'disabling no rule: 404',
    stands: 'WskRestBasicTests: reject disable of rule that does not exist',
    run: async (t) => refused(await setStatus(t, 'nonexistent', 'inactive'), 404, missing),
  },
  {
    fact: 'the status of no rule: 404',
    stands: 'WskRestBasicTests: reject status of rule that does not exist',
    run: async (t) => refused(await t.get('rules/nonexistent'), 404, missing),
  },
  {
    fact: 'GET of no rule: 404',
    stands: 'WskRestBasicTests: reject get of rule that does not exist',
    run: async (t) => refused(await t.get('rules/nonexistent?code=false'), 404, missing),
  },
  {
    fact: 'a status is answered 200 with nothing, changed or not; any other word is 400',
    run: async (t) => {
      const { rule } = await t.linked(await t.action(greet));
      for (const status of ['inactive', 'inactive', 'active']) {
        const reply = await setStatus(t, rule, status);
        expect([reply.status, reply.text]).toEqual([200, '']);
      }
      refused(await setStatus(t, rule, 'asleep'), 400, /asleep is not a recognized rule state$/);
    },
  },
  {
    fact: 'a new rule without one of both: 400',
    run: async (t) => {
      const reply = await t.put(`rules/${t.name('rule')}`, { trigger: '/_/t' });
      refused(reply, 400, 'rule requires a valid trigger and a valid action');
    },
  },
  {
    fact: 'a trigger or an action that does not exist: 400',
    run: async (t) => {
      const action = await t.action(greet);
      const { trigger } = await t.linked(action);
      const named = t.name('rule');
      const noTrigger = await t.put(`rules/${named}`, { trigger: '/_/nowhere', action: `/_/${action}` });
      refused(noTrigger, 400, `trigger /${t.namespace}/nowhere does not exist`);
      const noAction = await t.put(`rules/${named}`, { trigger: `/_/${trigger}`, action: '/_/nowhere' });
      refused(noAction, 400, `action /${t.namespace}/nowhere does not exist`);
    },
  },
];

/** Sheets 2 and 6: rules. */
export const ruleCases = table('rules', 'core/controller/.../core/controller/Rules.scala', [...entities, ...refusals]);
