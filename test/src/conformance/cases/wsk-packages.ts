import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { exits, WskShell } from '../wsk-shell.js';
import { noSuch, code, described, summarised, tellsFields } from '../wsk-basics.js';

const suite = 'WskCliBasicTests: ';

/** A command that names a missing entity, and the error expected. */
const missing = (stands: string, command: (name: string) => string, text: (name: string) => string): Row => ({
  fact: `what is not there: ${command('NAME')}`,
  stands: `${suite}${stands}`,
  run: async (t) => {
    const shell = await WskShell.open(t);
    const name = command('').startsWith('activation') ? '0'.repeat(32) : t.name('none');
    await shell.fails(command(name), exits.notFound, new RegExp(`${text(name)} ${code}`));
  },
});

/** A second creation of an existing entity, which is refused. */
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
        parameters: [{ key: 'a', value: 'A' }],
        publish: true,
        version: '0.0.2',
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
        namespace: `"${t.namespace}"`,
        name: `"${name}"`,
        version: '"0.0.1"',
        publish: 'false',
        binding: '{}',
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
    fact: 'the namespace of a key is told, and what is in it',
    stands: [`${suite}return a list of exactly one namespace`, `${suite}list entities in default namespace`],
    run: async (t) => {
      const shell = await WskShell.open(t);
      expect(await shell.prints('namespace list')).toBe(`namespaces\n${t.namespace}\n`);
      expect(await shell.prints('namespace get')).toContain('default');
    },
  },
];

/** Packages and names in `wsk`, and its errors about missing entities. */
export const wskPackageCases = table('wsk: basics', 'system/basic/WskCliBasicTests.scala', rows);
