import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, echo, sleep } from '../functions.js';
import type { Activation, Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';

const suite = 'WskCliBasicTests: ';

/** Exit code of an activation that has failed, and of one that goes on. */
const failed = 246;
const accepted = 202;

const noSuch = 'The requested resource does not exist.';
const code = '\\(code [0-9a-zA-Z_-]+\\)';

const described = JSON.stringify([
  { name: 'paramName1', description: 'Parameter description 1' },
  { name: 'paramName2', description: 'Parameter description 2' },
]);
const summarised = '\\s*\\(parameters: paramName1, paramName2\\)';

/** A command about something that is not there. */
const missing = (stands: string, command: (name: string) => string, text: (name: string) => string): Row => ({
  fact: `what is not there: ${command('NAME')}`,
  stands: `${suite}${stands}`,
  run: async (t) => {
    const shell = await WskShell.open(t);
    const name = command('').startsWith('activation') ? '0'.repeat(32) : t.name('none');
    await shell.fails(command(name), exits.notFound, new RegExp(`${text(name)} ${code}`));
  },
});

/** An entity that is there already. */
const duplicate = (kind: 'action' | 'package' | 'trigger' | 'rule', stands: string): Row => ({
  fact: `a second ${kind} of a name is refused`,
  stands: `${suite}${stands}`,
  run: async (t) => {
    const shell = await WskShell.open(t);
    const rest = kind === 'rule' ? await linkOf(shell) : kind === 'action' ? ['hello.js'] : [];
    const name = await shell.create(kind, t.name(kind), rest);
    const text = new RegExp(`Unable to create ${kind} '${name}': resource already exists ${code}`);
    await shell.fails([kind, 'create', name, ...rest], exits.conflict, text);
  },
});

/** A trigger and an action for a rule. */
async function linkOf(shell: WskShell): Promise<[string, string]> {
  const { trial } = shell;
  return [await shell.create('trigger', trial.name('trigger')), await shell.create('action', trial.name('action'))];
}

/** A shell with a trigger and its rule. */
async function withRule(
  t: Trial,
  trigger: readonly string[] = [],
): Promise<{ shell: WskShell; trigger: string; action: string; rule: string }> {
  const shell = await WskShell.open(t);
  const names = {
    trigger: await shell.create('trigger', t.name('trigger'), trigger),
    action: await shell.create('action', t.name('action')),
  };
  const rule = await shell.create('rule', t.name('rule'), [names.trigger, names.action]);
  return { shell, ...names, rule };
}

async function withAction(t: Trial, text: string, rest: readonly string[] = []): Promise<[WskShell, string]> {
  const shell = await WskShell.open(t);
  await shell.write('code.js', text);
  return [shell, await shell.create('action', t.name('action'), ['code.js', ...rest])];
}

/** The record of what `wsk` has started. */
async function recordOf(shell: WskShell, args: readonly string[]): Promise<Activation> {
  const [, id = ''] = /with id ([0-9a-f]{32})/.exec(await shell.prints(args)) ?? [];
  return shell.trial.record(id);
}

/** Fields of an entity that are told one by one. */
async function tellsFields(
  shell: WskShell,
  kind: string,
  name: string,
  fields: Readonly<Record<string, string | RegExp>>,
): Promise<void> {
  const told = `ok: got ${kind} ${name}, displaying field`;
  for (const [field, value] of Object.entries(fields)) {
    const printed = await shell.prints([kind, 'get', name, field]);
    expect(printed).toContain(`${told} ${field}\n`);
    if (typeof value === 'string') expect(printed).toContain(`${told} ${field}\n${value}`);
    else expect(printed).toMatch(value);
  }
  if (kind !== 'rule')
    await shell.fails([kind, 'get', name, 'invalid'], exits.error, "Invalid field filter 'invalid'.");
}

const combined =
  'Incorrect usage. Cannot combine --feed-param or --trigger-param flag with neither --param nor --param-file flag';

/** What a trigger's record logs of a rule. */
const ruleLog = (t: Trial, rule: string, action: string): Record<string, string> => ({
  rule: `${t.namespace}/${rule}`,
  action: `${t.namespace}/${action}`,
});

const rows: Row[] = [
  {
    fact: 'names are those of one collection only',
    stands: [`${suite}reject creating duplicate entity`, `${suite}reject deleting entity in wrong collection`],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('trigger', t.name('trigger'));
      await shell.fails(`action create ${name} hello.js`, exits.conflict);
      await shell.fails(`action delete ${name}`, exits.conflict);
    },
  },
  {
    fact: 'a key that is none is refused',
    stands: `${suite}reject unauthenticated access`,
    run: async (t) => {
      const shell = await WskShell.open(t, { APIHOST: t.user.url, AUTH: 'xxx' });
      await shell.fails('namespace get', exits.unauthorized, 'The supplied authentication is invalid');
    },
  },
  {
    fact: 'a package is made, changed, read and listed',
    stands: `${suite}create, update, get and list a package`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('package', t.name('package'), '-p a A --shared yes');
      await shell.prints(`package update ${name}`);
      expect(await shell.json(`package get ${name}`)).toMatchObject({
        ...{ parameters: [{ key: 'a', value: 'A' }], publish: true, version: '0.0.2' },
      });
      expect(await shell.prints('package list --limit 200')).toContain(name);
    },
  },
  {
    fact: 'a summary of a package has its actions',
    stands: `${suite}create, and get a package summary`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const annotated = (text: string): string[] => ['-a', 'description', text, '-a', 'parameters', described];
      const name = await shell.create('package', t.name('package'), annotated('Package description'));
      const action = `${name}/${t.name('action')}`;
      await shell.create('action', action, ['hello.js', ...annotated('Action description')]);
      const summary = await shell.prints(`package get ${name} --summary`);
      expect(summary).toMatch(new RegExp(`package /${t.namespace}/${name}: Package description${summarised}`));
      expect(summary).toMatch(new RegExp(`action /${t.namespace}/${action}: Action description${summarised}`));
    },
  },
  {
    fact: 'names may have spaces',
    stands: ['package', 'action', 'trigger'].map((kind) =>
      kind === 'action'
        ? `${suite}create an action with a name that contains spaces`
        : `${suite}create a ${kind} with a name that contains spaces`,
    ),
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const [kind, rest] of [
        ['package', []],
        ['action', ['hello.js']],
        ['trigger', []],
      ] as const) {
        const name = `${t.name(kind)} with spaces`;
        shell.removes(kind, name);
        expect(await shell.prints([kind, 'create', name, ...rest])).toContain(`ok: created ${kind} ${name}`);
      }
    },
  },
  {
    fact: 'the fields of a package are told one by one',
    stands: `${suite}create a package, and get its individual fields`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('package', t.name('package'), '-p payload test');
      await tellsFields(shell, 'package', name, {
        ...{ namespace: `"${t.namespace}"`, name: `"${name}"`, version: '"0.0.1"', publish: 'false', binding: '{}' },
      });
    },
  },
  duplicate('package', 'reject creation of duplication packages'),
  duplicate('action', 'reject create of an action that already exists'),
  duplicate('trigger', 'reject creation of duplicate triggers'),
  duplicate('rule', 'reject creation of duplicate rules'),
  ...[
    ['reject delete of package that does not exist', 'package delete', "Unable to delete package '*'. "],
    ['reject delete of action that does not exist', 'action delete', "Unable to delete action '*'. "],
    ['reject invocation of action that does not exist', 'action invoke', "Unable to invoke action '*': "],
    ['reject get of an action that does not exist', 'action get', "Unable to get action '*': "],
    ['reject delete of trigger that does not exist', 'trigger delete', "Unable to get trigger '*'. "],
    ['reject get of trigger that does not exist', 'trigger get', "Unable to get trigger '*': "],
    ['reject firing of a trigger that does not exist', 'trigger fire', "Unable to fire trigger '*': "],
    ['reject delete of rule that does not exist', 'rule delete', "Unable to delete rule '*'. "],
    ['reject enable of rule that does not exist', 'rule enable', "Unable to enable rule '*': "],
    ['reject disable of rule that does not exist', 'rule disable', "Unable to disable rule '*': "],
    ['reject status of rule that does not exist', 'rule status', "Unable to get status of rule '*': "],
    ['reject get of rule that does not exist', 'rule get', "Unable to get rule '*': "],
    ['reject get of activation that does not exist', 'activation get', "Unable to get activation '*': "],
    ['reject logs of activation that does not exist', 'activation logs', "Unable to get logs for activation '*': "],
    [
      'reject result of activation that does not exist',
      'activation result',
      "Unable to get result for activation '*': ",
    ],
  ].map(([stands = '', command = '', text = '']) =>
    missing(
      stands,
      (name) => `${command} ${name}`,
      (name) => text.replace('*', name) + noSuch,
    ),
  ),
  {
    fact: 'a package that is not there is named with its namespace',
    stands: `${suite}reject get of package that does not exist`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('none');
      const told = `Unable to get package '${name}': The requested resource '${t.namespace}/${name}' does not exist. `;
      await shell.fails(`package get ${name}`, exits.notFound, new RegExp(told + code));
    },
  },
  {
    fact: 'names are told apart by their case',
    stands: `${suite}create the same action twice with different cases`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('twice');
      await shell.create('action', name.toUpperCase());
      await shell.create('action', name.toLowerCase());
    },
  },
  {
    fact: 'an action is made, changed, read and listed',
    stands: `${suite}create, update, get and list an action`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'), 'hello.js -p a A');
      await shell.prints(`action update ${name} -p b B`);
      expect(await shell.json(`action get ${name}`)).toMatchObject({
        ...{ parameters: [{ key: 'b', value: 'B' }], publish: false, version: '0.0.2' },
      });
      expect(await shell.prints('action list --limit 200')).toContain(name);
    },
  },
  {
    fact: 'a file of parameters is what an action is invoked with',
    stands: `${suite}create, and invoke an action using a parameter file`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo);
      await shell.write('parameters.json', '{ "payload": "test" }');
      const { response } = await recordOf(shell, ['action', 'invoke', name, '-P', 'parameters.json']);
      expect(response.result).toEqual({ payload: 'test' });
    },
  },
  {
    fact: 'code that is no JavaScript is the error of who wrote it',
    stands: `${suite}create and invoke action with malformed js resulting in activation error`,
    run: async (t) => {
      const [shell, name] = await withAction(t, 'x');
      const { response } = await recordOf(shell, ['action', 'invoke', name, '-p', 'payload', 'whatever']);
      expect(response.status).toBe('action developer error');
      expect(JSON.stringify(response.result)).toContain('ReferenceError');
    },
  },
  {
    fact: 'an error that an action returns is told on standard error',
    stands: `${suite}create and invoke a blocking action resulting in an application error response`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo);
      for (const error of ['Error message', 502, true]) {
        const invoke = ['action', 'invoke', name, '--blocking', '-p', 'error', String(error)];
        const { stderr } = await shell.fails(invoke, failed);
        const record = JSON.parse(stderr.slice(stderr.indexOf('{'))) as Activation;
        expect(record.response.result).toEqual({ error });
        const alone = await shell.fails([...invoke, '--result'], failed);
        expect(JSON.parse(alone.stderr)).toEqual({ error });
      }
    },
  },
  {
    fact: 'a promise that fails is the error of its action',
    stands: `${suite}create and invoke a blocking action resulting in an failed promise`,
    run: async (t) => {
      const [shell, name] = await withAction(t, "function main() { return Promise.reject({ msg: 'on purpose' }); }");
      const { stderr } = await shell.fails(`action invoke ${name} --blocking`, failed);
      const record = JSON.parse(stderr.slice(stderr.indexOf('{'))) as Activation;
      expect(record.response.result).toEqual({ error: { msg: 'on purpose' } });
    },
  },
  {
    fact: 'a result is waited for, and told alone',
    stands: [
      `${suite}invoke a blocking action and get only the result`,
      `${suite}create an action, and invoke an action that returns an empty JSON object`,
    ],
    run: async (t) => {
      const [shell, name] = await withAction(t, countWords);
      const args = ['action', 'invoke', name, '--result', '-p', 'payload', 'one two three'];
      expect(await shell.prints(args)).toContain('"count": 3');
      const [other, empty] = await withAction(t, 'function main() { return {}; }');
      expect(JSON.parse(await other.prints(`action invoke ${empty} --result`))).toEqual({});
    },
  },
  {
    fact: 'a summary has description and parameters of an action',
    stands: `${suite}create, and get an action summary`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo, ['-a', 'description', 'It acts', '-a', 'parameters', described]);
      const summary = await shell.prints(`action get ${name} --summary`);
      expect(summary).toMatch(new RegExp(`action /${t.namespace}/${name}: It acts${summarised}`));
    },
  },
  {
    fact: 'a run that takes longer than a caller waits goes on',
    needs: 'encryption',
    stands: `${suite}create, and invoke an action that times out to ensure the proper response is received`,
    run: async (t) => {
      // Of the server on which callers wait for 3 s.
      const { url, auth } = await t.encrypting();
      const shell = await WskShell.open(t, { APIHOST: url, AUTH: auth });
      await shell.write('sleep.js', sleep);
      const name = t.name('sleep');
      await shell.prints(`action create ${name} sleep.js -t 30000`);
      const invoke = ['action', 'invoke', name, '--result', '-p', 'sleepMs', '5000'];
      await shell.fails(invoke, accepted, 'but the request has not yet finished');
      await shell.prints(`action delete ${name}`);
    },
  },
  {
    fact: 'an action of an image has no code',
    stands: `${suite}create, and get docker action get ensure exec code is omitted`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('image'), '--docker fake-container');
      expect(await shell.prints(`action get ${name}`)).not.toContain('"code"');
    },
  },
  {
    fact: 'a trigger is made, changed, read, fired and listed',
    stands: `${suite}create, update, get, fire and list trigger`,
    run: async (t) => {
      const { shell, trigger, action, rule } = await withRule(t, ['-p', 'a', 'A']);
      await shell.prints(`trigger update ${trigger}`);
      expect(await shell.json(`trigger get ${trigger}`)).toMatchObject({
        ...{ parameters: [{ key: 'a', value: 'A' }], publish: false, version: '0.0.2' },
        rules: { [`${t.namespace}/${rule}`]: { action: { name: action, path: t.namespace }, status: 'active' } },
      });
      const fired = await recordOf(shell, ['trigger', 'fire', trigger, '-p', 't', 'T']);
      expect(fired.response.result).toEqual({ t: 'T' });
      expect([fired.logs.length, fired.end, fired.duration]).toEqual([1, undefined, undefined]);
      expect(JSON.parse(fired.logs[0]!)).toEqual({
        ...{ statusCode: 0, success: true, activationId: expect.any(String) },
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
        ...{ namespace: `"${t.namespace}"`, name: `"${trigger}"`, version: '"0.0.1"', publish: 'false' },
        ...{ annotations: '[]', limits: '{}' },
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
        ...{ namespace: `"${t.namespace}"`, name: `"${rule}"`, version: '"0.0.1"', status: '"active"' },
        ...{ trigger: new RegExp(trigger), action: new RegExp(action) },
      });
      expect(await shell.prints(`rule get ${rule} trigger`)).not.toContain(action);
      expect(await shell.prints(`rule get ${rule} action`)).not.toContain(trigger);
    },
  },
  {
    fact: 'the namespace of a key is told, and what is in it',
    stands: [`${suite}return a list of exactly one namespace`, `${suite}list entities in default namespace`],
    run: async (t) => {
      const shell = await WskShell.open(t);
      expect(await shell.prints('namespace list')).toBe(`namespaces\n${t.namespace}\n`);
      expect(await shell.prints('namespace get')).toContain('default');
    },
  },
  {
    fact: 'the record of a trigger has the fields of all records',
    stands: `${suite}create a trigger, and fire a trigger to get its individual fields from an activation`,
    run: async (t) => {
      const { shell, trigger } = await withRule(t);
      const { activationId } = await recordOf(shell, ['trigger', 'fire', trigger]);
      const record = await shell.json<Activation>(`activation get ${activationId}`);
      expect(record).toMatchObject({
        ...{ namespace: t.namespace, name: trigger, version: '0.0.1', publish: false, activationId },
        ...{ subject: expect.stringMatching(/./), start: expect.any(Number), end: 0, duration: 0, annotations: [] },
      });
    },
  },
  {
    fact: 'an id and --last are not given together',
    stands: `${suite}reject activation request when using activation ID with --last Flag`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const both = 'dummyActivationId. An activation ID is required.';
      for (const [command, text] of [
        ['activation get dummyActivationId publish --last', both],
        ['activation get dummyActivationId --last', "Invalid field filter 'dummyActivationId'."],
        ['activation logs dummyActivationId --last', both],
        ['activation result dummyActivationId --last', both],
      ] as const) {
        await shell.fails(command, exits.error, text);
      }
    },
  },
];

/** What `wsk` does with entities and activations, and what it says of those that are not there. */
export const wskBasicCases = table('wsk: basics', 'system/basic/WskCliBasicTests.scala', rows);
