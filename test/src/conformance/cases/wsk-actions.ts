import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import AdmZip from 'adm-zip';
import { until } from '../../support/running-platform.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { context, echo } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Activation, Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { argumentFlags, escapedValues, fileValues, jsonValues, pairs } from './json-arguments.js';

type Pairs = { key: string; value: unknown }[];

const suite = 'WskCliBasicUsageTests: ';

/** Ends before its deadline, unless it is told to hang. */
const beforeDeadline = `function main({ forceHang }) {
  return new Promise((done) => {
    if (forceHang) return;
    setTimeout(() => done({ timedout: true }), Math.max(0, process.env.__OW_DEADLINE - Date.now() - 500));
  });
}`;

/** Invokes an action with `wsk`, and resolves with its record. */
async function recordOf(shell: WskShell, args: readonly string[]): Promise<Activation> {
  const printed = await shell.prints(['action', 'invoke', ...args]);
  const [, id = ''] = /with id ([0-9a-f]{32})/.exec(printed) ?? [];
  return shell.trial.record(id);
}

/** A shell with an action of this code, at once with what creates it beside its file. */
async function withAction(
  t: Trial,
  code: string,
  rest: readonly string[] = [],
): Promise<{ shell: WskShell; name: string }> {
  const shell = await WskShell.open(t);
  await shell.write('code.js', code);
  const name = await shell.create('action', t.name('action'), ['code.js', ...rest]);
  return { shell, name };
}

const annotationsOf = (shell: WskShell, name: string): Promise<Pairs> =>
  shell.json<Pairs>(['action', 'get', name, 'annotations']);

const sorted = (pairs: Pairs): Pairs => pairs.toSorted((a, b) => (a.key < b.key ? -1 : 1));

/** Annotations of a web action. */
const web = (isWeb: boolean, isRaw = false): Pairs => [
  { key: 'web-export', value: isWeb || isRaw },
  { key: 'raw-http', value: isRaw },
  { key: 'final', value: isWeb || isRaw },
];
const runtime: Pairs = [{ key: 'exec', value: 'nodejs:20' }];
const noKey: Pairs = [{ key: 'provide-api-key', value: false }];
const kind = ['--kind', 'nodejs:20'];

/** Parameters and annotations that `wsk` is given, as the entity has them. */
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
    fact: 'an action that ends while it is loaded has failed',
    stands: `${suite}invoke an action that exits during initialization and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'process.exit(1);');
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action did not initialize and exited unexpectedly.' },
      });
    },
  },
  {
    fact: 'an action that is loaded for ever is stopped',
    stands: `${suite}invoke an action that hangs during initialization and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'while (true);', ['-t', '3000']);
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exceeded its time limits of 3000 milliseconds during initialization.' },
      });
    },
  },
  {
    fact: 'an action that ends while it runs has failed',
    stands: `${suite}invoke an action that exits during run and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'function main() { process.exit(1); }');
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action did not produce a valid response and exited unexpectedly.' },
      });
    },
  },
  {
    fact: 'the last activation is found without its id',
    needs: 'operator',
    stands: `${suite}retrieve the last activation using --last flag`,
    run: async (t) => {
      // Of an identity of its own: others invoke at the same time.
      const { auth, url } = await t.identity();
      const shell = await WskShell.open(t, { APIHOST: url, AUTH: auth });
      await shell.prints('action create lastName hello.js');
      const printed = await shell.prints('action invoke lastName');
      const [id = ''] = /[0-9a-f]{32}/.exec(printed) ?? [];
      await until('it is stored', async () => (await shell.run('activation get --last')).stdout.includes(id));
      for (const [command, text] of [
        ['activation get publish --last', id],
        ['activation get --last', id],
        ['activation logs --last', 'hello undefined!'],
        ['activation result --last', 'hello, undefined!'],
      ] as const) {
        expect(await shell.prints(command)).toContain(text);
      }
      await shell.prints('action delete lastName');
    },
  },
  {
    fact: 'log lines are told without time and stream',
    stands: `${suite}ensure timestamp and stream are stripped from log lines`,
    run: async (t) => {
      const { shell, name } = await withAction(
        t,
        "function main() { console.log('this is stdout'); console.error('this is stderr'); }",
      );
      const { activationId } = await recordOf(shell, [name]);
      const lines = (await shell.prints(`activation logs --strip ${activationId}`)).split('\n');
      expect(lines.sort()).toEqual(['', 'this is stderr', 'this is stdout']);
    },
  },
  {
    fact: 'a record has all of its fields, empty ones too',
    stands: `${suite}ensure keys are not omitted from activation record`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'function main(args) { return args; }');
      const { activationId } = await recordOf(shell, [name]);
      const record = await shell.json<Activation>(`activation get ${activationId}`);
      expect(record.start).toBeGreaterThan(0);
      expect(record.end).toBeGreaterThan(0);
      expect(record.response).toMatchObject({ status: 'success', success: true, result: {} });
      expect(record.logs).toEqual([]);
      expect(record.annotations).toBeDefined();
    },
  },
  {
    fact: 'a record has path and limits of its action',
    stands: `${suite}write the action-path and the limits to the annotations`,
    needs: 'concurrency',
    run: async (t) => {
      const limits = ['-m', '512', '-t', '60000', '-l', '1', '-c', '1'];
      const { shell, name } = await withAction(t, echo, limits);
      const { annotations, response } = await recordOf(shell, [name, '-p', 'payload', 'this is a test']);
      expect(response.status).toBe('success');
      expect(valueOf(annotations, 'path')).toMatch(new RegExp(`.*/${name}$`));
      expect(valueOf(annotations, 'limits')).toEqual({ timeout: 60_000, memory: 512, logs: 1, concurrency: 1 });
    },
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
    fact: 'an action is told of itself',
    stands: `${suite}invoke an action receiving context properties`,
    run: async (t) => {
      const { shell, name } = await withAction(t, context, ['-a', 'provide-api-key', 'true']);
      const start = Date.now();
      const { response, activationId } = await recordOf(shell, [name]);
      const { api_key, namespace, action_name, activation_id, deadline } = response.result as Record<string, string>;
      expect({ api_key, namespace, action_name, activation_id }).toEqual({
        ...{ api_key: t.user.auth, namespace: t.namespace },
        ...{ action_name: `/${t.namespace}/${name}`, activation_id: activationId },
      });
      expect(Number(deadline)).toBeGreaterThanOrEqual(start);
    },
  },
  {
    fact: 'a result is told alone',
    stands: `${suite}invoke an action successfully with options --blocking and --result`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const printed = await shell.prints(`action invoke ${name} --blocking --result -p hello Robert`);
      expect(JSON.parse(printed)).toEqual({ hello: 'Robert' });
    },
  },
  {
    fact: 'a deadline is kept by who looks at it, and a run that hangs does not spoil the next',
    stands: [
      `${suite}invoke an action that returns a result by the deadline`,
      `${suite}invoke an action twice, where the first times out but the second does not and should succeed`,
    ],
    run: async (t) => {
      const { shell, name } = await withAction(t, beforeDeadline, ['-t', '3000']);
      const hung = await recordOf(shell, [name, '-p', 'forceHang', 'true']);
      expect(hung.response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exceeded its time limits of 3000 milliseconds.' },
      });
      const good = await recordOf(shell, [name, '-p', 'forceHang', 'false']);
      expect(good.response).toMatchObject({ status: 'success', result: { timedout: true } });
    },
  },
  {
    fact: '--web sets annotations, whatever its case',
    stands: `${suite}ensure --web flags set the proper annotations`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      for (const flag of ['true', 'faLse', 'tRue', 'nO', 'yEs', 'no', 'raw', 'NO', 'Raw']) {
        await shell.prints(['action', 'update', name, 'code.js', '--web', flag, ...kind]);
        const expected = web(/^(true|yes)$/i.test(flag), /^raw$/i.test(flag));
        expect(sorted(await annotationsOf(shell, name))).toEqual(sorted([...expected, ...runtime, ...noKey]));
      }
    },
  },
  {
    fact: '--web keeps annotations, and takes new ones instead',
    stands: `${suite}ensure action update with --web flag only copies existing annotations when new annotations are not provided`,
    run: async (t) => {
      const given = ['-a', 'createKey', 'createValue', '-a', 'origKey', 'origValue', ...kind];
      const { shell, name } = await withAction(t, echo, given);
      const base = [...web(true), ...runtime, ...noKey, { key: 'createKey', value: 'createValue' }];
      await shell.prints(['action', 'update', name, 'code.js', '--web', 'true', ...kind]);
      const first = await annotationsOf(shell, name);
      expect(sorted(first)).toEqual(sorted([...base, { key: 'origKey', value: 'origValue' }]));
      const changed = ['-a', 'updateKey', 'updateValue', '-a', 'origKey', 'overwrittenValue'];
      await shell.prints(['action', 'update', name, 'code.js', '--web', 'true', ...changed, ...kind]);
      expect(sorted(await annotationsOf(shell, name))).toEqual(
        sorted([...base, { key: 'updateKey', value: 'updateValue' }, { key: 'origKey', value: 'overwrittenValue' }]),
      );
    },
  },
  {
    fact: 'an update makes a web action that was not there',
    stands: `${suite}ensure action update creates an action with --web flag`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('action');
      shell.removes('action', name);
      await shell.prints(['action', 'update', name, 'hello.js', '--web', 'true', ...kind]);
      expect(sorted(await annotationsOf(shell, name))).toEqual(sorted([...web(true), ...runtime, ...noKey]));
    },
  },
  {
    fact: '--web and --web-secure are refused where they mean nothing',
    stands: [
      `${suite}reject action create and update with invalid --web flag input`,
      `${suite}reject action create and update when --web-secure used on a non-web action`,
    ],
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const invalid =
        "Invalid argument 'bogus' for --web flag. Valid input consist of 'yes', 'true', 'raw', 'false', or 'no'.";
      const other = t.name('action');
      await shell.fails(`action create ${other} code.js --web bogus`, exits.misuse, invalid);
      await shell.fails(`action update ${other} code.js --web bogus`, exits.misuse, invalid);
      const insecure = 'The --web-secure option is only valid when the --web option is enabled.';
      await shell.fails(`action create ${other} code.js --web-secure true`, exits.misuse, insecure);
      await shell.fails(`action update ${name} code.js --web-secure true`, exits.misuse, insecure);
      await shell.prints(`action update ${name} code.js --web true`);
      await shell.fails(`action update ${name} code.js --web false --web-secure true`, exits.misuse, insecure);
    },
  },
  {
    fact: '--web-secure makes a secret once, or takes one',
    stands: `${suite}generate a require-whisk-annotation --web-secure used on a web action`,
    run: async (t) => {
      const secure = ['--web', 'true', '--web-secure'];
      const { shell, name } = await withAction(t, echo, [...secure, 'true', ...kind]);
      const secretOf = async (): Promise<unknown> => valueOf(await annotationsOf(shell, name), 'require-whisk-auth');
      expect(typeof (await secretOf())).toBe('number');
      const update = (secret: string): Promise<string> =>
        shell.prints(['action', 'update', name, 'code.js', ...secure, secret, ...kind]);
      await update('my-secret');
      expect(await annotationsOf(shell, name)).toEqual(
        expect.arrayContaining([...runtime, ...web(true), { key: 'require-whisk-auth', value: 'my-secret' }]),
      );
      await update('true');
      const secret = await secretOf();
      expect(typeof secret).toBe('number');
      await update('true');
      expect(await secretOf()).toBe(secret);
    },
  },
  {
    fact: '--web-secure false removes the secret',
    stands: `${suite}remove existing require-whisk-annotation when --web-secure is false`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo, ['--web', 'true', '--web-secure', 'my-secret']);
      expect(valueOf(await annotationsOf(shell, name), 'require-whisk-auth')).toBe('my-secret');
      await shell.prints(`action update ${name} code.js --web true --web-secure false`);
      expect(valueOf(await annotationsOf(shell, name), 'require-whisk-auth')).toBeUndefined();
    },
  },
  {
    fact: '--web-secure keeps annotations, and takes new ones instead',
    stands: `${suite}ensure action update with --web-secure flag only copies existing annotations when new annotations are not provided`,
    run: async (t) => {
      const given = ['--web', 'true', '-a', 'createKey', 'createValue', '-a', 'origKey', 'origValue', ...kind];
      const { shell, name } = await withAction(t, echo, given);
      const base = [...runtime, ...web(true), { key: 'require-whisk-auth', value: 'my-secret' }];
      const update = ['action', 'update', name, 'code.js', '--web-secure', 'my-secret', ...kind];
      await shell.prints(update);
      const created = [
        { key: 'createKey', value: 'createValue' },
        { key: 'origKey', value: 'origValue' },
      ];
      expect(await annotationsOf(shell, name)).toEqual(expect.arrayContaining([...base, ...created]));
      await shell.prints([...update, '-a', 'updateKey', 'updateValue', '-a', 'origKey', 'overwrittenValue']);
      const updated = [
        { key: 'updateKey', value: 'updateValue' },
        { key: 'origKey', value: 'overwrittenValue' },
      ];
      expect(await annotationsOf(shell, name)).toEqual(expect.arrayContaining([...base, ...updated]));
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
      // A host that is named without a scheme is spoken to by HTTPS.
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

/** What `wsk` does with actions. */
export const wskActionCases = table('wsk: actions', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
