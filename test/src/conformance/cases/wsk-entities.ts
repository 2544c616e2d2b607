import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import type { Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { argumentFlags, escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';

type Pairs = { key: string; value: unknown }[];
type Kind = 'package' | 'trigger';

const suite = 'WskCliBasicUsageTests: ';

/** An annotation that describes two parameters. */
const described = JSON.stringify([
  { name: 'paramName1', description: 'Parameter description 1' },
  { name: 'paramName2', description: 'Parameter description 2' },
]);

async function keepsArguments(t: Trial, kind: Kind, given: readonly string[], expected: Pairs): Promise<void> {
  const shell = await WskShell.open(t);
  await shell.write('arguments.json', JSON.stringify(fileValues));
  const name = await shell.create(kind, t.name(kind), given);
  expect(await shell.prints([kind, 'get', name])).toMatch(new RegExp(`^ok: got ${kind} ${name}\n`));
  const entity = await shell.json<{ parameters: Pairs; annotations: Pairs }>([kind, 'get', name]);
  expect(entity.parameters).toEqual(expect.arrayContaining(expected));
  expect(entity.annotations).toEqual(expect.arrayContaining(expected));
}

/** Cases that packages and triggers share. */
const alike = (kind: Kind): Row[] => [
  {
    fact: `parameters and annotations of a ${kind} are JSON where they look like it, and texts else`,
    stands: `${suite}create, and get a ${kind} to verify parameter and annotation parsing`,
    run: (t) => keepsArguments(t, kind, argumentFlags(jsonValues), pairs(jsonValues)),
  },
  {
    fact: `parameters and annotations of a ${kind} come from files`,
    stands: `${suite}create, and get a ${kind} to verify file parameter and annotation parsing`,
    run: (t) => keepsArguments(t, kind, ['-P', 'arguments.json', '-A', 'arguments.json'], pairs(fileValues)),
  },
  {
    fact: `escapes of parameters and annotations of a ${kind} stay what they are`,
    stands: `${suite}create a ${kind} with the proper parameter and annotation escapes`,
    run: (t) => keepsArguments(t, kind, argumentFlags(escapedValues), pairs(escapedValues)),
  },
  {
    fact: `a summary of a ${kind} marks parameters that are bound`,
    stands: `${suite}denote bound ${kind} parameters for ${kind} summaries`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const parameters = JSON.stringify([
        { name: 'annotated', description: 'A' },
        { name: 'both', description: 'B' },
      ]);
      const given = ['-a', 'parameters', parameters, '-p', 'bound', 'Bound', '-p', 'both', 'Both'];
      const name = await shell.create(kind, t.name(kind), given);
      expect(await shell.prints([kind, 'get', name, '--summary'])).toContain('(parameters: annotated, *both, *bound)');
    },
  },
  {
    fact: `a summary of a ${kind} is made of what the annotations describe`,
    stands:
      kind === 'package'
        ? `${suite}create, and get a package summary without a description and/or parameters`
        : [
            `${suite}create, and get a trigger summary without a description and/or parameters`,
            `${suite}display a trigger summary when --summary flag is used with 'wsk trigger get'`,
          ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const [given, rest] of [
        [
          ['-a', 'parameters', described],
          ': Returns a result based on parameters paramName1 and paramName2\\s*\\(parameters: paramName1, paramName2\\)',
        ],
        [['-a', 'description', 'It is described'], ': It is described\\s*\\(parameters: none defined\\)'],
        [[], '\\s*\\(parameters: none defined\\)'],
      ] as const) {
        const name = await shell.create(kind, t.name(kind), given);
        const summary = await shell.prints([kind, 'get', name, '--summary']);
        expect(summary).toMatch(new RegExp(`${kind} /${t.namespace}/${name}${rest}`, 'i'));
      }
    },
  },
];

/** Creates entities out of the order of their names, and expects a list that is sorted by name. */
async function listsByName(
  t: Trial,
  kind: 'action' | 'package' | 'trigger' | 'rule',
  rest: (shell: WskShell) => Promise<readonly string[]>,
): Promise<void> {
  const shell = await WskShell.open(t);
  const given = await rest(shell);
  const name = t.name(kind);
  for (const at of [2, 1, 3]) await shell.create(kind, `${name}${at}`, given);
  const listed = await shell.prints(`${kind} list --name-sort --limit 200`);
  expect(listed.match(new RegExp(`${name}[1-3]`, 'g'))).toEqual([1, 2, 3].map((at) => `${name}${at}`));
}

/** A trigger and an action for a rule. */
async function linked(shell: WskShell): Promise<[string, string]> {
  const { trial } = shell;
  return [await shell.create('trigger', trial.name('trigger')), await shell.create('action', trial.name('action'))];
}

const longName = (t: Trial): string => t.name('long').padEnd(70, 'x');

const rows: Row[] = [
  {
    fact: 'a package is created and deleted',
    stands: `${suite}create, and delete a package`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('package');
      expect(await shell.prints(`package create ${name}`)).toContain(`ok: created package ${name}`);
      expect(await shell.prints(`package delete ${name}`)).toContain(`ok: deleted package ${name}`);
    },
  },
  ...alike('package'),
  {
    fact: 'an action is no package',
    stands: `${suite}report conformance error accessing action as package`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'));
      const conflict = 'Resource by this name exists but is not in this collection';
      await shell.fails(`package get ${name}`, exits.conflict, conflict);
      await shell.fails(
        `package bind ${name} bogus`,
        exits.conflict,
        'Cannot bind to a resource that is not a package',
      );
      const none = 'Binding references a package that does not exist';
      await shell.fails(`package bind ${t.name('none')} ${t.name('none')}`, exits.badRequest, none);
    },
  },
  ...alike('trigger'),
  {
    fact: 'a trigger whose feed cannot begin is not there',
    stands: `${suite}not create a trigger when feed fails to initialize`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('trigger');
      for (const feed of ['bogus', 'bogus/feed']) {
        await shell.fails(`trigger create ${name} --feed ${feed}`, exits.notFound);
        await shell.fails(`trigger get ${name}`, exits.notFound);
      }
    },
  },
  {
    fact: 'a feed is told what happens to its trigger',
    stands: `${suite}invoke a feed action with the correct lifecyle event when creating, retrieving and deleting a feed trigger`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      await shell.write('echo.js', echo);
      const feed = await shell.create('action', t.name('echo'), 'echo.js');
      const name = t.name('trigger');
      shell.removes('trigger', name);
      for (const [command, event] of [
        [`trigger create ${name} --feed ${feed}`, 'CREATE'],
        [`trigger get ${name}`, 'READ'],
        [`trigger update ${name}`, 'UPDATE'],
        [`trigger delete ${name}`, 'DELETE'],
      ] as const) {
        expect(await shell.prints(command)).toContain(`"lifecycleEvent": "${event}"`);
      }
    },
  },
  {
    fact: 'names of 70 characters are listed whole',
    stands: ['package', 'trigger', 'rule']
      .map((kind) => `${suite}create, and list a ${kind} with a long name`)
      .concat(`${suite}create, and list an action with a long name`),
    run: async (t) => {
      const shell = await WskShell.open(t);
      const [trigger, action] = await linked(shell);
      for (const [kind, rest, told] of [
        ['package', [], 'private'],
        ['action', ['hello.js'], 'private nodejs'],
        ['trigger', [], 'private'],
        ['rule', [trigger, action], 'private'],
      ] as const) {
        const name = await shell.create(kind, longName(t), rest);
        expect(await shell.prints(`${kind} list --limit 200`)).toContain(`${name} ${told}`);
      }
    },
  },
  {
    fact: 'actions are listed by name',
    stands: `${suite}return a list of alphabetized actions`,
    run: (t) => listsByName(t, 'action', () => Promise.resolve(['hello.js'])),
  },
  {
    fact: 'packages are listed by name',
    stands: `${suite}return a list of alphabetized packages`,
    run: (t) => listsByName(t, 'package', () => Promise.resolve([])),
  },
  {
    fact: 'triggers are listed by name',
    stands: `${suite}return a list of alphabetized triggers`,
    run: (t) => listsByName(t, 'trigger', () => Promise.resolve([])),
  },
  {
    fact: 'rules are listed by name',
    stands: `${suite}return a list of alphabetized rules`,
    run: (t) => listsByName(t, 'rule', linked),
  },
  {
    fact: 'actions of no package are listed before others',
    stands: `${suite}return an alphabetized list with default package actions on top`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const action = await shell.create('action', t.name('action'));
      const inside = await shell.create('package', t.name('package'));
      for (const at of [3, 1, 2]) await shell.create('action', `${inside}/${action}${at}`);
      const listed = await shell.prints('action list --name-sort --limit 200');
      const names = listed.match(new RegExp(`(${inside}/)?${action}[1-3]?`, 'g'));
      expect(names).toEqual([action, ...[1, 2, 3].map((at) => `${inside}/${action}${at}`)]);
    },
  },
];

/** Packages and triggers in `wsk`, and its lists. */
export const wskEntityCases = table('wsk: entities', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
