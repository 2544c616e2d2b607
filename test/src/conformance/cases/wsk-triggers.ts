import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { noSuch, described, withRule, recordOf, tellsFields } from '../wsk-basics.js';

const suite = 'WskCliBasicTests: ';

const combined =
  'Incorrect usage. Cannot combine --feed-param or --trigger-param flag with neither --param nor --param-file flag';

/** The line that a trigger's record logs for a rule. */
const ruleLog = (t: Trial, rule: string, action: string): Record<string, string> => ({
  rule: `${t.namespace}/${rule}`,
  action: `${t.namespace}/${action}`,
});

const rows: Row[] = [
  {
    fact: 'a trigger is made, changed, read, fired and listed',
    stands: `${suite}create, update, get, fire and list trigger`,
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t, ['-p', 'a', 'A']);
      await shell.prints(`trigger update ${trigger}`);
      expect(await shell.json(`trigger get ${trigger}`)).toMatchObject({
        parameters: [{ key: 'a', value: 'A' }],
        publish: false,
        version: '0.0.2',
        rules: { [`${t.namespace}/${rule}`]: { action: { name: action, path: t.namespace }, status: 'active' } },
      });
      const fired = await recordOf(shell, ['trigger', 'fire', trigger, '-p', 't', 'T']);
      expect(fired.response.result).toEqual({ t: 'T' });
      expect([fired.logs.length, fired.end, fired.duration]).toEqual([1, undefined, undefined]);
      expect(JSON.parse(fired.logs[0]!)).toEqual({
        statusCode: 0,
        success: true,
        activationId: expect.any(String),
        ...ruleLog(t, rule, action),
      });
      const bare = await recordOf(shell, ['trigger', 'fire', trigger]);
      expect([bare.response.result, bare.end]).toEqual([{}, undefined]);
      expect(await shell.prints('trigger list --limit 200')).toContain(trigger);
    },
  },
  {
    fact: 'parameters of a feed need a feed, and no others beside them',
    stands: [
      `${suite}return error message when updating feed param on trigger that contains no feed param`,
      `${suite}return error message when creating feed with both --param and --trigger-param/--feed-param flags`,
      `${suite}return error message when updating feed with both --param and --trigger-param/--feed-param flags`,
      `${suite}return error message when creating feed with both --param-file and --trigger-param/--feed-param flags`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('trigger', t.name('trigger'), '-p a A');
      const none = 'this trigger does not contain a feed';
      await shell.fails(`trigger update ${name} -F feedParam feedParamVal`, exits.error, none);
      await shell.write('parameters.json', '{ "payload": "test" }');
      for (const flags of [
        'create NAME -p a A -F f v',
        'update NAME -p a A -T f v',
        'create NAME -P parameters.json -F f v -T t v',
      ]) {
        await shell.fails(`trigger ${flags.replace('NAME', t.name('feed'))}`, exits.notAllowed, combined);
      }
    },
  },
  {
    fact: 'annotations of a trigger are kept',
    stands: `${suite}create, and get a trigger summary`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const given = ['-a', 'description', 'Trigger description', '-a', 'parameters', described];
      const name = await shell.create('trigger', t.name('trigger'), given);
      const entity = await shell.json<{ annotations: unknown[] }>(`trigger get ${name}`);
      expect(entity).toMatchObject({ name, namespace: t.namespace });
      expect(entity.annotations).toHaveLength(2);
      expect(entity.annotations).toEqual(
        expect.arrayContaining([
          { key: 'description', value: 'Trigger description' },
          { key: 'parameters', value: JSON.parse(described) as unknown },
        ]),
      );
    },
  },
  {
    fact: 'a trigger is fired with a file of parameters, and with none',
    stands: [
      `${suite}create, and fire a trigger using a parameter file`,
      `${suite}create, and fire a trigger to ensure result is empty`,
    ],
    run: async (t) => {
      const { shell, trigger } = await withRule(t);
      await shell.write('parameters.json', '{ "payload": "test" }');
      const fired = await recordOf(shell, ['trigger', 'fire', trigger, '-P', 'parameters.json']);
      expect(fired.response.result).toEqual({ payload: 'test' });
      expect((await recordOf(shell, ['trigger', 'fire', trigger])).response.result).toEqual({});
    },
  },
  {
    fact: 'the fields of a trigger are told one by one',
    stands: `${suite}create a trigger, and get its individual fields`,
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t, ['-p', 'payload', 'test']);
      await tellsFields(shell, 'trigger', trigger, {
        namespace: `"${t.namespace}"`,
        name: `"${trigger}"`,
        version: '"0.0.1"',
        publish: 'false',
        annotations: '[]',
        limits: '{}',
        parameters: /\[\s+\{\s+"key":\s+"payload",\s+"value":\s+"test"\s+\}\s+\]/,
      });
      expect(await shell.json(`trigger get ${trigger} rules`)).toEqual({
        [`${t.namespace}/${rule}`]: { action: { name: action, path: t.namespace }, status: 'active' },
      });
    },
  },
  {
    fact: 'a trigger tells of a rule whose action is gone',
    stands: `${suite}create and fire a trigger with a rule whose action has been deleted`,
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t);
      const gone = await shell.create('action', t.name('gone'));
      const broken = await shell.create('rule', t.name('rule'), [trigger, gone]);
      await shell.prints(`action delete ${gone}`);
      const { logs } = await recordOf(shell, ['trigger', 'fire', trigger]);
      const entries = logs.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(entries).toHaveLength(2);
      expect(entries).toEqual(
        expect.arrayContaining([
          { statusCode: 0, success: true, activationId: expect.any(String), ...ruleLog(t, rule, action) },
          { statusCode: 1, success: false, error: noSuch, ...ruleLog(t, broken, gone) },
        ]),
      );
    },
  },
  {
    fact: 'a rule is made, active, changed, read and listed',
    stands: [
      `${suite}create rule, get rule, update rule and list rule`,
      `${suite}create rule, get rule, ensure rule is enabled by default`,
      `${suite}display a rule summary when --summary flag is used with 'wsk rule get'`,
    ],
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t);
      expect(await shell.prints(`rule get ${rule}`)).toMatch(/"status":\s*"active"/);
      const summary = await shell.prints(`rule get ${rule} --summary`);
      expect(summary).toMatch(new RegExp(`rule /${t.namespace}/${rule}\\s*\\(status: active\\)`, 'i'));
      await shell.prints(`rule update ${rule} ${trigger} ${action}`);
      const printed = await shell.prints(`rule get ${rule}`);
      for (const text of [rule, trigger, action, '"version": "0.0.2"']) expect(printed).toContain(text);
      expect(await shell.prints('rule list --limit 200')).toContain(rule);
    },
  },
  {
    fact: 'the fields of a rule are told one by one',
    stands: `${suite}create a rule, and get its individual fields`,
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t);
      await tellsFields(shell, 'rule', rule, {
        namespace: `"${t.namespace}"`,
        name: `"${rule}"`,
        version: '"0.0.1"',
        status: '"active"',
        trigger: new RegExp(trigger),
        action: new RegExp(action),
      });
      expect(await shell.prints(`rule get ${rule} trigger`)).not.toContain(action);
      expect(await shell.prints(`rule get ${rule} action`)).not.toContain(trigger);
    },
  },
];

/** Triggers and rules in `wsk`. */
export const wskTriggerCases = table('wsk: basics', 'system/basic/WskCliBasicTests.scala', rows);
