import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import type { Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { argumentFlags, escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';
import AdmZip from 'adm-zip';
import { recordOf, withAction, sorted, runtime, noKey, kind } from '../wsk-usage.js';
import type { Pairs } from '../wsk-usage.js';

const suite = 'WskCliBasicUsageTests: ';

/** Creates an action with these arguments of `wsk`; expects the parameters and annotations in the entity. */
async function keepsArguments(t: Trial, given: readonly string[], expected: Pairs): Promise<void> {
  const { shell, name } = await withAction(t, echo, given);
  expect(await shell.prints(['action', 'get', name])).toMatch(new RegExp(`^ok: got action ${name}\n`));
  const { parameters, annotations } = await shell.json<{ parameters: Pairs; annotations: Pairs }>(`action get ${name}`);
  expect(parameters).toEqual(expect.arrayContaining(expected));
  expect(annotations).toEqual(expect.arrayContaining(expected));
}

const rows: Row[] = [
  {
    fact: 'help tells how wsk is used',
    stands: [`${suite}show help and usage info`, `${suite}show help and usage info using the default language`],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const printed = await shell.prints([]);
      for (const text of [/usage:/i, /flags/i, /available commands/i, /--help/i]) expect(printed).toMatch(text);
      await shell.prints(['-h'], { LANG: 'de_DE' });
    },
  },
  {
    fact: 'the version of the API is told',
    stands: `${suite}show api version`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      expect(await shell.prints('property get --apiversion')).toMatch(/whisk API version\s+v1/i);
    },
  },
  {
    fact: 'an unknown command fails, and help is named',
    stands: `${suite}reject bad command`,
    run: async (t) => void (await (await WskShell.open(t)).fails('bogus', exits.error, /Run 'wsk --help' for usage/i)),
  },
  {
    fact: 'a name of three parts needs no leading slash',
    stands: `${suite}allow a 3 part Fully Qualified Name (FQN) without a leading '/'`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const inside = await shell.create('package', t.name('package'));
      const trigger = await shell.create('trigger', t.name('trigger'));
      const action = t.name('action');
      const full = `${t.namespace}/${inside}/${action}`;
      shell.removes('action', `${inside}/${action}`);
      await shell.prints(`action create ${full} hello.js`);
      await shell.create('rule', t.name('rule'), [trigger, full]);
      expect(await shell.prints(`action invoke ${full}`)).toContain(`ok: invoked /${full}`);
      expect(await shell.prints(`action get ${full}`)).toContain(`ok: got action ${inside}/${action}`);
    },
  },
  {
    fact: 'requests name the client',
    stands: `${suite}include CLI user agent headers with outbound requests`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      expect(await shell.prints('action list -v')).toMatch(/\bUser-Agent\b": \[\s+"OpenWhisk-CLI\/1.\d+.*"/);
    },
  },
  {
    fact: 'names that are none are refused',
    stands: `${suite}reject creating entities with invalid names`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      await shell.fails(['action', 'create', '', 'hello.js'], exits.error);
      for (const name of [' ', 'hi+there', '$hola', 'dora?', '|dora|dora?']) {
        await shell.fails(['action', 'create', name, 'hello.js'], exits.badRequest);
      }
    },
  },
  {
    fact: 'code that is not there is told with its name, and updates nothing',
    stands: [
      `${suite}reject create with missing file`,
      `${suite}reject action update when specified file is missing`,
      `${suite}reject action update for sequence with no components`,
    ],
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const missing = "File 'notfound' is not a valid file or it does not exist";
      await shell.fails('action create missingFile notfound', exits.misuse, missing);
      await shell.fails(`action update ${name} notfound`, exits.misuse, missing);
      await shell.fails(`action update ${name} --sequence`, exits.misuse);
    },
  },
  {
    fact: 'parameters and annotations are JSON where they look like it, and texts else',
    stands: `${suite}create, and get an action to verify parameter and annotation parsing`,
    run: (t) => keepsArguments(t, argumentFlags(jsonValues), pairs(jsonValues)),
  },
  {
    fact: 'parameters and annotations come from files',
    stands: `${suite}create, and get an action to verify file parameter and annotation parsing`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const file = await shell.write('arguments.json', JSON.stringify(fileValues));
      await keepsArguments(t, ['-P', file, '-A', file], pairs(fileValues));
    },
  },
  {
    fact: 'escapes of parameters and annotations stay what they are',
    stands: `${suite}create an action with the proper parameter and annotation escapes`,
    run: (t) => keepsArguments(t, argumentFlags(escapedValues), pairs(escapedValues)),
  },
  {
    fact: 'an unknown kind is refused with its name',
    stands: `${suite}report error when creating an action with unknown kind`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const text = "The specified runtime 'foobar' is not supported by this platform";
      await shell.fails(`action create ${t.name('action')} hello.js --kind foobar`, exits.badRequest, text);
    },
  },
  {
    fact: 'an archive needs a kind, and is code of it',
    stands: [
      `${suite}report error when creating an action with zip but without kind`,
      `${suite}Ensure that zipped actions are encoded and uploaded as NodeJS actions`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      const zip = new AdmZip();
      zip.addFile('package.json', Buffer.from('{ "name": "zipped", "main": "index.js", "author": "somebody" }'));
      zip.addFile('index.js', Buffer.from("exports.main = () => ({ author: require('./package.json').author });"));
      await shell.write('code.zip', zip.toBuffer());
      const name = t.name('action');
      const refused = await shell.run(`action create ${name} code.zip`);
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toContain('requires specifying the action kind');
      await shell.create('action', name, 'code.zip --kind nodejs:default');
      expect((await recordOf(shell, [name])).response.result).toEqual({ author: 'somebody' });
    },
  },
  {
    fact: 'characters of markup stay what they are',
    stands: `${suite}invoke action while not encoding &, <, > characters`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'));
      const { response, logs } = await recordOf(shell, [name, '-p', 'payload', '&<>']);
      expect(response).toMatchObject({ success: true, result: { payload: 'hello, &<>!' } });
      expect(logs.filter((line) => line.includes('&<>'))).toHaveLength(1);
    },
  },
  {
    fact: 'the URL of an action is told, encoded, and that of a web action',
    stands: `${suite}get an action URL`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const [action, inside, exported] = ['action', 'package', 'web'].map((what) => `${t.name(what)} @_-.`) as [
        string,
        string,
        string,
      ];
      await shell.create('package', inside);
      for (const name of [action, `${inside}/${action}`]) await shell.create('action', name);
      for (const name of [exported, `${inside}/${exported}`]) {
        await shell.create('action', name, ['hello.js', '--web', 'true']);
      }
      const [of, packaged, its] = [action, inside, exported].map(encodeURIComponent) as [string, string, string];
      const { url } = t.user;
      const paths: readonly [readonly string[], string][] = [
        [[action, '--url'], `/namespaces/${t.namespace}/actions/${of}`],
        [[action, 'field', '--url', '--summary'], `/namespaces/${t.namespace}/actions/${of}`],
        [[exported, '--url'], `/web/${t.namespace}/default/${its}`],
        [[`${inside}/${action}`, '--url'], `/namespaces/${t.namespace}/actions/${packaged}/${of}`],
        [[`${inside}/${exported}`, '--url'], `/web/${t.namespace}/${packaged}/${its}`],
      ];
      for (const [args, path] of paths) {
        expect(await shell.prints(['action', 'get', ...args])).toContain(`${url}/api/v1${path}\n`);
      }
      await shell.fails(['action', 'get', t.name('none'), '--url'], exits.notFound);
      // wsk uses HTTPS for a host without a scheme.
      if (!url.startsWith('https:')) return;
      const bare = url.slice('https://'.length);
      expect(await shell.prints(['action', 'get', action, '--url', '--apihost', bare])).toContain(`${url}/api/v1`);
    },
  },
  {
    fact: '--verbose tells the beginning of long bodies, --debug all of them',
    stands: `${suite}limit length of HTTP request and response bodies for --verbose`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const told = async (flag: string): Promise<number> => {
        const printed = await shell.prints(['action', 'invoke', name, '-b', flag, '-p', 'bigValue', 'a'.repeat(1000)]);
        return printed.split('will be truncated').length - 1;
      };
      expect([await told('-v'), await told('-d')]).toEqual([2, 0]);
    },
  },
  {
    fact: 'a summary marks parameters that are bound, and those that are final',
    stands: `${suite}denote bound and finalized action parameters for action summaries`,
    run: async (t) => {
      const described = JSON.stringify([
        { name: 'paramAnnot', description: 'Annotated' },
        { name: 'paramOverlap', description: 'Annotated And Bound' },
      ]);
      const given = ['-a', 'parameters', described, '-p', 'paramBound', 'Bound', '-p', 'paramOverlap', 'Both'];
      const { shell, name } = await withAction(t, echo, given);
      const final = await shell.create('action', t.name('final'), ['code.js', ...given, '-a', 'final', 'true']);
      const summary = (of: string): Promise<string> => shell.prints(`action get ${of} --summary`);
      expect(await summary(name)).toContain('(parameters: paramAnnot, *paramBound, *paramOverlap)');
      expect(await summary(final)).toContain('(parameters: paramAnnot, **paramBound, **paramOverlap)');
    },
  },
  {
    fact: 'a summary is made of what the annotations describe',
    stands: `${suite}create, and get an action summary without a description and/or defined parameters`,
    run: async (t) => {
      const { shell, name: bare } = await withAction(t, echo);
      const parameters = JSON.stringify([
        { name: 'paramName1', description: 'Parameter description 1' },
        { name: 'paramName2', description: 'Parameter description 2' },
      ]);
      const undescribed = await shell.create('action', t.name('undescribed'), [
        'code.js',
        '-a',
        'parameters',
        parameters,
      ]);
      const described = await shell.create('action', t.name('described'), ['code.js', '-a', 'description', 'It acts']);
      const told = async (name: string, rest: string): Promise<void> => {
        const expected = new RegExp(`action /${t.namespace}/${name}${rest}`, 'i');
        expect(await shell.prints(`action get ${name} --summary`)).toMatch(expected);
      };
      const named = 'Returns a result based on parameters paramName1 and paramName2';
      await told(undescribed, `: ${named}\\s*\\(parameters: paramName1, paramName2\\)`);
      await told(described, ': It acts\\s*\\(parameters: none defined\\)');
      await told(bare, '\\s*\\(parameters: none defined\\)');
    },
  },
  {
    fact: 'code is saved to a file, which is not overwritten',
    stands: `${suite}save action code to file`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'));
      const savedBy = async (flags: readonly string[], file: string): Promise<void> => {
        const printed = await shell.prints(['action', 'get', name, ...flags]);
        const path = printed.split('ok: saved action code to ')[1]?.trim() ?? '';
        expect(path).toMatch(new RegExp(`/${file}$`));
        expect(await readFile(path, 'utf8')).toBe(await readFile(join(shell.home, 'hello.js'), 'utf8'));
        await shell.fails(['action', 'get', name, ...flags], exits.misuse, `The file '${file}' already exists`);
        await rm(path);
      };
      await savedBy(['--save'], `${name}.js`);
      await savedBy(['--save-as', 'saved-as'], 'saved-as');
      const bad = 'bad-directory/action';
      await shell.fails(`action get ${name} --save-as ${bad}`, exits.misuse, `Cannot create file '${bad}'`);
      const sequence = await shell.create('action', t.name('sequence'), ['--sequence', name]);
      for (const flag of ['--save', `--save-as ${sequence}`]) {
        await shell.fails(`action get ${sequence} ${flag}`, exits.misuse, 'Cannot save action sequences');
      }
      const image = await shell.create('action', t.name('image'), ['--docker', 'bogus/image']);
      for (const flag of ['--save', `--save-as ${image}`]) {
        await shell.fails(`action get ${image} ${flag}`, exits.misuse, 'Cannot save Docker images');
      }
      const withCode = await shell.create('action', t.name('withCode'), ['hello.js', '--docker', 'bogus/image']);
      expect(await shell.prints(`action get ${withCode} --save`)).toContain('saved action code to ');
      await shell.fails(`action get ${withCode} --save`, exits.misuse, `The file '${withCode}' already exists`);
    },
  },
  {
    fact: 'the fields of an action are told one by one',
    stands: `${suite}create an action, and get its individual fields`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'), ['hello.js', '-p', 'payload', 'test', ...kind]);
      const told = `ok: got action ${name}, displaying field`;
      for (const [field, value] of [
        ['name', `"${name}"`],
        ['version', '"0.0.1"'],
        ['namespace', `"${t.namespace}"`],
        ['publish', 'false'],
      ]) {
        expect(await shell.prints(`action get ${name} ${field}`)).toContain(`${told} ${field}\n${value}`);
      }
      await shell.fails(`action get ${name} invalid`, exits.misuse, "error: Invalid field filter 'invalid'.");
      const field = async (of: string): Promise<unknown> => {
        expect(await shell.prints(`action get ${name} ${of}`)).toMatch(new RegExp(`^${told} ${of}`));
        return shell.json(`action get ${name} ${of}`);
      };
      expect(await field('exec')).toEqual({ kind: 'nodejs:20', binary: false });
      expect(await field('parameters')).toEqual([{ key: 'payload', value: 'test' }]);
      expect(sorted((await field('annotations')) as Pairs)).toEqual(sorted([...runtime, ...noKey]));
      expect(await field('limits')).toEqual({ timeout: 60_000, memory: 256, logs: 10, concurrency: 1 });
    },
  },
];

/** Arguments of `wsk`, and creation, reading and saving of actions. */
export const wskActionCases = table('wsk: actions', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
