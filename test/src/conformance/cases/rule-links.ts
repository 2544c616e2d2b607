import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, greet } from '../functions.js';
import { accepted } from '../trial.js';
import type { Activation, Entity, Trial } from '../trial.js';

interface Rule extends Entity {
  status?: string;
  trigger: { path: string; name: string };
  action: { path: string; name: string };
}

/** Fires a trigger; resolves with the records of the invoked actions, by the action's name. */
async function invoked(t: Trial, trigger: string, payload: string): Promise<Map<string, Activation>> {
  const fired = await t.fire(trigger, { payload });
  expect(fired.cause).toBeUndefined();
  const records = new Map<string, Activation>();
  for (const line of fired.logs) {
    const outcome = JSON.parse(line) as { statusCode: number; success: boolean; activationId: string };
    expect(outcome).toMatchObject({ statusCode: 0, success: true });
    const record = await t.record(outcome.activationId);
    records.set(record.name, record);
  }
  return records;
}

/** Fires a trigger; expects one activation, whose action counted the words of the payload. */
async function counts(t: Trial, trigger: string, payload: string): Promise<void> {
  const [record, ...others] = [...(await invoked(t, trigger, payload)).values()];
  expect([record?.response.result, others]).toEqual([{ count: payload.split(' ').length }, []]);
  expect(record?.cause).toBeUndefined();
}

const setStatus = (t: Trial, rule: string, status: string) => t.post(`rules/${rule}`, { status });

const links: Row[] = [
  {
    fact: 'a fire invokes the action of a rule; nothing is its cause',
    stands:
      'WskRestRuleTests: invoke the action attached on trigger fire, creating an activation for each entity including the cause',
    run: async (t) => {
      const { trigger } = await t.linked(await t.action(countWords, {}, t.name('a1 to 1')));
      await counts(t, trigger, 'this is a test');
    },
  },
  {
    fact: "a rule's action may be a package's",
    stands:
      'WskRestRuleTests: invoke the action from a package attached on trigger fire, creating an activation for each entity including the cause',
    run: async (t) => {
      const name = t.name('rule pkg');
      await t.replace(`packages/${name}`);
      const { trigger } = await t.linked(await t.action(countWords, {}, `${name}/a1 to 1`));
      await counts(t, trigger, 'this is a test');
    },
  },
  {
    fact: "a rule's action may be a binding's",
    stands:
      'WskRestRuleTests: invoke the action from a package binding attached on trigger fire, creating an activation for each entity including the cause',
    run: async (t) => {
      const provider = await t.package();
      const bound = await t.package({ binding: { namespace: '_', name: provider } });
      await t.action(countWords, {}, `${provider}/a1 to 1`);
      const { trigger } = await t.linked(`${bound}/a1 to 1`);
      await counts(t, trigger, 'this is a test');
    },
  },
  {
    fact: 'a deleted rule invokes nothing: a fire without others is 204',
    stands: 'WskRestRuleTests: not activate an action if the rule is deleted when the trigger is fired',
    run: async (t) => {
      const { trigger, rule } = await t.linked(await t.action(countWords));
      expect((await t.fire(trigger, { payload: 'bogus' })).logs).toHaveLength(1);
      expect((await t.delete<Rule>(`rules/${rule}`)).body.status).toBe('inactive');
      expect((await t.post(`triggers/${trigger}`, { payload: 'bogus2' })).status).toBe(204);
    },
  },
  {
    fact: 'an inactive rule invokes nothing until it is active again',
    stands: 'WskRestRuleTests: enable and disable a rule and check action is activated only when rule is enabled',
    run: async (t) => {
      const { trigger, rule } = await t.linked(await t.action(countWords));
      await counts(t, trigger, 'this is a test');
      await setStatus(t, rule, 'inactive');
      expect((await t.post(`triggers/${trigger}`, { payload: 'more words' })).status).toBe(204);
      await setStatus(t, rule, 'active');
      await counts(t, trigger, 'this is a test');
    },
  },
  {
    fact: 'a rule of the same name may be created again, for another trigger',
    stands: 'WskRestRuleTests: be able to recreate a rule with the same name and match it successfully',
    run: async (t) => {
      const action = await t.action(countWords);
      const { rule } = await t.linked(action);
      await t.delete(`rules/${rule}`);
      const trigger = t.name('trigger');
      await t.replace(`triggers/${trigger}`);
      expect((await t.put(`rules/${rule}`, { trigger: `/_/${trigger}`, action: `/_/${action}` })).status).toBe(200);
      await counts(t, trigger, 'this is a test');
    },
  },
  {
    fact: 'two triggers may lead to one action',
    stands: 'WskRestRuleTests: connect two triggers via rules to one action and activate it accordingly',
    run: async (t) => {
      const action = await t.action(countWords);
      const triggers = [(await t.linked(action)).trigger, (await t.linked(action)).trigger];
      await counts(t, triggers[0] ?? '', 'got three words');
      await counts(t, triggers[1] ?? '', 'got four words, period');
    },
  },
  {
    fact: 'one trigger may lead to two actions',
    stands: 'WskRestRuleTests: connect one trigger to two different actions, invoking them both eventually',
    run: async (t) => {
      const [counting, greeting] = [await t.action(countWords), await t.action(greet)];
      const { trigger } = await t.linked(counting);
      await t.replace(`rules/${t.name('rule')}`, { trigger: `/_/${trigger}`, action: `/_/${greeting}` });
      const records = await invoked(t, trigger, 'this is a test');
      expect(records.get(counting)?.response.result).toEqual({ count: 4 });
      expect(records.get(greeting)?.logs.join()).toContain('hello, this is a test');
    },
  },
  {
    fact: 'two triggers may lead to two actions each',
    stands: 'WskRestRuleTests: connect two triggers to two different actions, invoking them both eventually',
    run: async (t) => {
      const [counting, greeting] = [await t.action(countWords), await t.action(greet)];
      for (const payload of ['got three words', 'got four words, period']) {
        const { trigger } = await t.linked(counting);
        await t.replace(`rules/${t.name('rule')}`, { trigger: `/_/${trigger}`, action: `/_/${greeting}` });
        const records = await invoked(t, trigger, payload);
        expect(records.get(counting)?.response.result).toEqual({ count: payload.split(' ').length });
        const greeted = records.get(greeting) as Activation;
        expect(logTexts(greeted)).toEqual([`hello, ${payload}!`]);
      }
    },
  },
  {
    fact: 'the status of each rule is in GET, not in the list',
    stands: 'WskRestRuleTests: disable a rule and check its status is displayed when listed',
    run: async (t) => {
      const action = await t.action(countWords);
      const [first, second] = [await t.linked(action), await t.linked(action)];
      await setStatus(t, first.rule, 'inactive');
      const rows = accepted(await t.get<Rule[]>('rules?limit=200'));
      const statuses = async ({ rule }: { rule: string }): Promise<unknown[]> => [
        rows.find((row) => row.name === rule)?.status,
        (await t.get<Rule>(`rules/${rule}`)).body.status,
      ];
      expect([await statuses(first), await statuses(second)]).toEqual([
        [undefined, 'inactive'],
        [undefined, 'active'],
      ]);
    },
  },
  {
    fact: 'an update keeps the status',
    stands: 'WskRestRuleTests: preserve rule status when a rule is updated',
    run: async (t) => {
      const action = await t.action(countWords);
      const { trigger, rule } = await t.linked(action);
      const second = t.name('trigger');
      await t.replace(`triggers/${second}`);
      for (const [target, status] of [
        [trigger, 'active'],
        [trigger, 'inactive'],
        [second, 'active'],
        [trigger, 'inactive'],
      ] as const) {
        await setStatus(t, rule, status);
        const updated = await t.replace<Rule>(`rules/${rule}`, { trigger: `/_/${target}`, action: `/_/${action}` });
        expect([updated.status, (await t.get<Rule>(`rules/${rule}`)).body.status]).toEqual([status, status]);
      }
    },
  },
];

/** Actions that rules invoke. */
export const ruleLinkCases = table('rules', 'core/controller/.../core/controller/Triggers.scala', links);
