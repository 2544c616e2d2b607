import { expect, test } from '@jest/globals';
import { describeCases } from './cases.js';
import { runWsk, withFolder, type WskResult } from './wsk-process.js';

const wsk = (line: string): Promise<WskResult> =>
  withFolder((directory) => runWsk(line.split(' ').filter(Boolean), { directory }));

const globalHelp = [
  '      --apihost HOST         whisk API HOST',
  '      --apiversion VERSION   whisk API VERSION',
  '  -u, --auth KEY             authorization KEY',
  '      --cert string          client cert',
  '  -d, --debug                debug level output',
  '  -i, --insecure             bypass certificate checking',
  '      --key string           client key',
  '  -v, --verbose              verbose output',
  '',
].join('\n');

const listHelp = `list activations
Usage:
  wsk activation list [NAMESPACE or NAME] [flags]

Flags:
  -f, --full          include full activation description
  -h, --help          help for list
  -l, --limit LIMIT   only return LIMIT number of activations from the collection with a maximum LIMIT of 200 activations (default 30)
      --since SINCE   return activations with timestamps later than SINCE; measured in milliseconds since Th, 01, Jan 1970
  -s, --skip SKIP     exclude the first SKIP number of activations from the result
      --upto UPTO     return activations with timestamps earlier than UPTO; measured in milliseconds since Th, 01, Jan 1970

Global Flags:
${globalHelp}`;

const namespaceHelp = `work with namespaces
Usage:
  wsk namespace [command]

Available Commands:
  get         get triggers, actions, and rules in the registry for namespace
  list        list available namespaces

Flags:
  -h, --help   help for namespace

Global Flags:
${globalHelp}
Use "wsk namespace [command] --help" for more information about a command.
`;

test.each([
  ['activation list --help', listHelp],
  ['activation list -h', listHelp],
  ['--verbose activation -u a:b list --help', listHelp],
  ['help activation list', listHelp],
  ['namespace', namespaceHelp],
  ['namespace --help', namespaceHelp],
  ['namespace nonsense', namespaceHelp],
  ['help namespace', namespaceHelp],
])('wsk %s', async (line, stdout) => {
  expect(await wsk(line)).toEqual({ code: 0, stdout, stderr: '' });
});

test.each(['', '--help', 'help', '-h'])('wsk %s lists all commands', async (line) => {
  const { code, stdout, stderr } = await wsk(line);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const name of ['action', 'activation', 'help', 'list', 'namespace', 'property']) {
    expect(stdout).toMatch(new RegExp(`^  ${name} +\\S`, 'm'));
  }
});

test('wsk help with an unknown topic', async () => {
  const { code, stdout, stderr } = await wsk('help nonsense');
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  expect(stderr).toMatch(/^Unknown help topic \[`nonsense`\]\nUsage:\n {2}wsk \[command\]\n/);
});

/** A usage error above the level of a command is printed twice, as by OpenWhisk's wsk. */
const twice = (message: string, between = ''): string => `Error: ${message}\n${between}${message}\n`;
const hint = "Run 'wsk --help' for usage.\n";

test.each([
  ['nonsense', twice('unknown command "nonsense" for "wsk"', hint)],
  ['acton list', twice('unknown command "acton" for "wsk"\n\nDid you mean this?\n\taction\n', hint)],
  ['--nonsense', twice('unknown flag: --nonsense')],
  ['action --nonsense', twice('unknown flag: --nonsense')],
  ['-vx', twice("unknown shorthand flag: 'x' in -x")],
  ['--apihost', twice('flag needs an argument: --apihost')],
  ['action list --nonsense', 'unknown flag: --nonsense\n'],
  ['action list -q', "unknown shorthand flag: 'q' in -q\n"],
  ['action list -vq', "unknown shorthand flag: 'q' in -q\n"],
  ['action list --limit', 'flag needs an argument: --limit\n'],
  ['action list -l', "flag needs an argument: 'l' in -l\n"],
  [
    'action list --limit=x',
    'invalid argument "x" for "-l, --limit" flag: strconv.ParseInt: parsing "x": invalid syntax\n',
  ],
  [
    'action invoke a --blocking=x',
    'invalid argument "x" for "-b, --blocking" flag: strconv.ParseBool: parsing "x": invalid syntax\n',
  ],
  ['property get -u x', "unknown shorthand flag: 'u' in -u\n"],
])('wsk %s is refused', async (line, stderr) => {
  expect(await wsk(line)).toEqual({ code: 1, stdout: '', stderr });
});

describeCases('flags', [
  {
    wsk: 'action list -l5 --skip=0x10 -n=false',
    answers: [[200, []]],
    requests: ['GET /actions?limit=5&skip=16'],
    stdout: 'actions',
  },
  { wsk: 'action list -ns 3 -l=7', answers: [[200, []]], requests: ['GET /actions?limit=7&skip=3'], stdout: 'actions' },
  {
    wsk: 'action delete -- -x',
    answers: [[200, {}]],
    requests: ['DELETE /actions/-x'],
    stdout: 'ok: deleted action -x',
  },
  {
    wsk: ['action', 'delete', "a b?c#d%e'f/g"],
    answers: [[200, {}]],
    requests: ['DELETE /actions/a%20b%3Fc%23d%25e%27f/g'],
    stdout: "ok: deleted action a b?c#d%e'f/g",
  },
]);

test('without a terminal there is no colour', async () => {
  const { stdout } = await wsk('--help');
  expect(stdout).not.toContain('\u001b');
});
