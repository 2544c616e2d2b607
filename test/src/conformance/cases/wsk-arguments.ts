import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';

const runsAtOnce = 4;

/** Calls `run` for each of `all`, `runsAtOnce` at a time. */
async function forEach<One>(all: readonly One[], run: (one: One) => Promise<unknown>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: runsAtOnce }, async () => {
      for (const one of left) await run(one);
    }),
  );
}

/** Expects that each command fails with the code and its text, and that the output points to the help. */
async function refusesAll(t: Trial, code: number, commands: readonly (readonly [string, string])[]): Promise<void> {
  const shell = await WskShell.open(t);
  await forEach(commands, async ([command, text]) => {
    const { stderr } = await shell.fails(command, code, text);
    expect({ command, stderr }).toMatchObject({ stderr: expect.stringContaining("Run 'wsk --help' for usage.") });
  });
}

const withParameters = [
  'action create actionName hello.js',
  'action update actionName hello.js',
  'action invoke actionName',
  'package create packageName',
  'package update packageName',
  'package bind packageName boundPackageName',
  'trigger create triggerName',
  'trigger update triggerName',
  'trigger fire triggerName',
];
/** Commands that take annotations: invoke and fire do not. */
const withAnnotations = withParameters.filter((command) => !/invoke|fire/.test(command));

/** Texts that start like JSON but are not valid JSON. */
const noJson = [
  '{"invalid1": }',
  '{"invalid2": bogus}',
  '{"invalid1": "aKey"',
  'invalid "string"',
  '{"invalid1": [1, 2, "invalid""arr"]}',
];
const noJsonFiles = { 'malformed.js': 'x', 'open.json': '{\n"invalid', 'bare.json': '{ bogus }', 'list.json': '[1,' };

const someArguments = 'error: Invalid argument(s)';
const few = (needed: string): string => `${someArguments}. ${needed}`;
const many = (needed = ''): string => `${someArguments}: invalidArg.${needed && ` ${needed}`}`;
const anAction = 'An action name is required.';
const aPackage = 'A package name is required.';
const aRule = 'A rule name is required.';
const aTrigger = 'A trigger name is required.';
const anActivation = 'An activation ID is required.';
const aBinding = 'A package name and binding name are required.';
const aLink = 'A rule, trigger and action name are required.';
const aNamespace = 'An optional namespace is the only valid argument.';
const anApi = 'An API base path or API name is required.';
const apiParts =
  'Specify a swagger file or specify an API base path with an API path, an API verb, and an action name.';
const apiPlace = `${anApi}  An optional API relative path and operation may also be provided.`;
const apiFilter = 'Optional parameters are: API base path (or API name), API relative path and operation.';
const noNamespace =
  "An entity name, 'invalidArg', was provided instead of a namespace. Valid namespaces are of the following format: /NAMESPACE.";
const noSharing = "Cannot use value 'invalidArg' for shared";

const wrongArguments: readonly (readonly [string, string])[] = [
  ['api create', few(apiParts)],
  ['api create /basepath /path GET action invalidArg', many(apiParts)],
  ['api get', few(anApi)],
  ['api get /basepath invalidArg', many(anApi)],
  ['api delete', few(apiPlace)],
  ['api delete /basepath /path GET invalidArg', many(apiPlace)],
  ['api list /basepath /path GET invalidArg', many(apiFilter)],
  ['action create', few('An action name and code artifact are required.')],
  ['action create someAction', few('An action name and code artifact are required.')],
  ['action create actionName artifactName invalidArg', many()],
  ['action update', few(`${anAction} A code artifact is optional.`)],
  ['action update actionName artifactName invalidArg', many(`${anAction} A code artifact is optional.`)],
  ['action list namespace invalidArg', many(aNamespace)],
  ['activation list namespace invalidArg', many(aNamespace)],
  ['activation poll activationID invalidArg', many(aNamespace)],
  ...['delete', 'get', 'invoke'].map((verb) => [`action ${verb}`, few(anAction)] as const),
  ['action delete actionName invalidArg', many()],
  ['action get actionName namespace invalidArg', many()],
  ['action invoke actionName invalidArg', many()],
  ...['get', 'logs', 'result'].map((verb) => [`activation ${verb}`, few(anActivation)] as const),
  ['activation get activationID namespace invalidArg', many()],
  ['activation logs activationID invalidArg', many()],
  ['activation result activationID invalidArg', many()],
  ['namespace list invalidArg', many('No arguments are required.')],
  ['namespace get invalidArg', many('No arguments are required.')],
  ...['create', 'update', 'get', 'delete'].map((verb) => [`package ${verb}`, few(aPackage)] as const),
  ['package create packageName invalidArg', many()],
  ['package create packageName --shared invalidArg', noSharing],
  ['package update packageName invalidArg', many()],
  ['package update packageName --shared invalidArg', noSharing],
  ['package get packageName namespace invalidArg', many()],
  ['package bind', few(aBinding)],
  ['package bind packageName', few(aBinding)],
  ['package bind packageName bindingName invalidArg', many()],
  ['package list namespace invalidArg', many(aNamespace)],
  ['package list invalidArg', noNamespace],
  ['package delete namespace invalidArg', many()],
  ['package refresh namespace invalidArg', many(aNamespace)],
  ['package refresh invalidArg', noNamespace],
  ...['enable', 'disable', 'status', 'get', 'delete'].map((verb) => [`rule ${verb}`, few(aRule)] as const),
  ...['enable', 'disable', 'status', 'delete'].map((verb) => [`rule ${verb} ruleName invalidArg`, many()] as const),
  ['rule get ruleName namespace invalidArg', many()],
  ...['create', 'update'].flatMap((verb) => [
    ...['', ' ruleName', ' ruleName triggerName'].map((names) => [`rule ${verb}${names}`, few(aLink)] as const),
    [`rule ${verb} ruleName triggerName actionName invalidArg`, many()] as const,
  ]),
  ['rule list namespace invalidArg', many(aNamespace)],
  ['rule list invalidArg', noNamespace],
  ...['fire', 'create', 'update', 'get', 'delete'].map((verb) => [`trigger ${verb}`, few(aTrigger)] as const),
  ['trigger fire triggerName invalidArg', many(aTrigger)],
  ['trigger create triggerName invalidArg', many()],
  ['trigger update triggerName invalidArg', many()],
  ['trigger get triggerName namespace invalidArg', many()],
  ['trigger delete triggerName invalidArg', many()],
  ['trigger list namespace invalidArg', many(aNamespace)],
  ['trigger list invalidArg', noNamespace],
];

/** Values of a limit: undefined (the flag is absent), and the smallest and the largest that the server accepts. */
interface LimitValues {
  flag: string;
  name: string;
  values: readonly (number | undefined)[];
}

const rows: Row[] = [
  {
    fact: 'parameters and annotations that are no JSON are refused',
    stands: 'WskCliBasicUsageTests: reject commands that are executed with invalid JSON for annotations and parameters',
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const [name, text] of Object.entries(noJsonFiles)) await shell.write(name, text);
      // Every command with one of the texts, and the first command with all of them.
      const refused = (commands: readonly string[], flag: string, kind: string): [string[], string][] =>
        commands.flatMap((command, at) => {
          const inline = noJson.map((text) => [`-${flag}`, 'key', text]);
          const files = Object.keys(noJsonFiles).map((name) => [`-${flag.toUpperCase()}`, name]);
          const all = [...inline, ...files];
          const tried = at === 0 ? all : all.filter((_, place) => place === at % all.length);
          return tried.map((words): [string[], string] => [
            [...command.split(' '), ...words],
            `Invalid ${kind} argument`,
          ]);
        });
      const all = [...refused(withParameters, 'p', 'parameter'), ...refused(withAnnotations, 'a', 'annotation')];
      await forEach(all, ([args, text]) => shell.fails(args, exits.error, text));
    },
  },
  {
    fact: 'files of parameters and annotations are there',
    stands:
      'WskCliBasicUsageTests: reject commands that are executed with a missing or invalid parameter or annotation file',
    run: (t) => {
      const missing = "File 'notafile' is not a valid file or it does not exist";
      const bare = ['action create actionName', 'action update actionName'];
      const commands = [...withParameters, ...bare].flatMap((command) =>
        ['-P', '-A'].map((flag) => [`${command} ${flag} notafile`, missing] as const),
      );
      return refusesAll(t, exits.misuse, commands);
    },
  },
  {
    fact: 'parameters and annotations are pairs, and their files are named',
    stands: 'WskCliBasicUsageTests: reject commands that are executed with not enough param or annot arguments',
    run: (t) => {
      const commands = withParameters
        .map((command) => command.replace(' hello.js', ''))
        .flatMap((command) =>
          ['p', 'a'].flatMap((flag) => [
            [`${command} -${flag}`, `Arguments for '-${flag}' must be a key/value pair`] as const,
            [`${command} -${flag} key`, `Arguments for '-${flag}' must be a key/value pair`] as const,
            [`${command} -${flag.toUpperCase()}`, `An argument must be provided for '-${flag.toUpperCase()}'`] as const,
          ]),
        );
      return refusesAll(t, exits.error, commands);
    },
  },
  {
    fact: 'too few and too many arguments are refused, and what is needed is told',
    stands: 'WskCliBasicUsageTests: reject commands that are executed with invalid arguments',
    run: async (t) => {
      const shell = await WskShell.open(t);
      await forEach(wrongArguments, async ([command, text]) => {
        const { code, stderr } = await shell.run(command);
        expect([exits.error, exits.misuse]).toContain(code);
        expect({ command, stderr }).toMatchObject({ stderr: expect.stringContaining(text) });
        expect({ command, stderr }).toMatchObject({ stderr: expect.stringContaining("Run 'wsk --help' for usage.") });
      });
    },
  },
  {
    fact: 'limits are those given, the default ones or refused',
    stands: 'WskCliBasicUsageTests: create an action with different permutations of limits',
    run: async (t) => {
      const shell = await WskShell.open(t);
      const { body } = await t.user.send<{ limits: Record<string, number> }>('GET', '/');
      const { limits } = body;
      const mib = (bytes: number | undefined): number => (bytes ?? 0) / (1024 * 1024);
      const taken: LimitValues[] = [
        {
          flag: '--timeout',
          name: 'timeout',
          values: [undefined, limits['min_action_duration'], limits['max_action_duration']],
        },
        {
          flag: '--memory',
          name: 'memory',
          values: [undefined, mib(limits['min_action_memory']), mib(limits['max_action_memory'])],
        },
        {
          flag: '--logsize',
          name: 'logs',
          values: [undefined, mib(limits['min_action_logs']), mib(limits['max_action_logs'])],
        },
        { flag: '--concurrency', name: 'concurrency', values: [undefined, 1] },
      ];
      const standard: Record<string, number> = { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 };
      const permutations = taken.reduce<Record<string, number>[]>(
        (all, { name, values }) =>
          all.flatMap((one) => values.map((value) => (value === undefined ? one : { ...one, [name]: value }))),
        [{}],
      );
      // Each value of each limit comes among them.
      const tried = permutations.filter((_, at) => at % 5 === 0);
      await forEach(tried, async (given) => {
        const flags = taken.flatMap(({ flag, name }) => (given[name] === undefined ? [] : [flag, String(given[name])]));
        const name = await shell.create('action', t.name('limits'), ['hello.js', ...flags]);
        const { body: action } = await t.get<{ limits: unknown }>(`actions/${name}`);
        expect(action.limits).toEqual({ ...standard, ...given });
      });
      const refused = ['--timeout 0', '--timeout 6000000', '--memory 0', '--memory 32768', '--logsize 32768'];
      await forEach([...refused, '--concurrency 5000'], (flags) =>
        shell.fails(`action create ${t.name('limits')} hello.js ${flags}`, exits.badRequest, 'allowed threshold'),
      );
    },
  },
];

/** Arguments that `wsk` refuses before it sends a request, and limits of actions. */
export const wskArgumentCases = table('wsk: arguments', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
