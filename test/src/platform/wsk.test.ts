// The command line on the real platform: the README's commands, and the ending of each failure.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import AdmZip from 'adm-zip';
import { runWsk } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { hasPython } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const python = hasPython ? test : test.skip;
let platform: RunningPlatform;
let folder: string;

beforeAll(async () => {
  platform = await startPlatform();
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-wsk-'));
  writeFileSync(
    join(folder, 'fail.js'),
    `function main({ how }) {
    console.log('about to fail');
    if (how === 'error') return { error: 'no such thing' };
    if (how === 'exit') process.exit(1);
    return new Promise((done) => setTimeout(done, 300, { fine: true }));
  }`,
  );
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform.stop();
});

/** Runs a command line; one with spaces in a word is given as a list. */
function wsk(
  line: string | string[],
  flags = ['--apihost', platform.url, '--auth', platform.auth],
): Promise<WskResult> {
  return runWsk([...flags, ...(typeof line === 'string' ? line.split(' ') : line)], { directory: folder });
}
const printed = (stdout: string): WskResult => ({ code: 0, stdout, stderr: '' });
const id = (output: string): string => /[0-9a-f]{32}/.exec(output)?.[0] ?? '';

/** Waits for the record of an activation; the answer comes before it. */
const recorded = (activationId: string) => platform.api.record(activationId);

test("the README's lines", async () => {
  const readme = readFileSync(join(repository, 'README.md'), 'utf8');
  const [start = ''] = readme.split('--gpus');
  const lines = start.split('\n').filter((line) => line.startsWith('wsk '));
  expect(lines).toEqual([
    'wsk action create hello examples/hello/hello.js',
    'wsk action invoke hello --result --param name you',
    'wsk activation list',
  ]);
  expect(readme).toContain(`\nexport WHISK_APIHOST=http://127.0.0.1:3233\nexport WHISK_AUTH=${platform.auth}\n`);
  const outputs = [];
  for (const line of lines) {
    outputs.push(await wsk(line.replace('examples/', join(repository, 'examples/')).replace('wsk ', '')));
    await new Promise((done) => setTimeout(done, 200));
  }
  expect(outputs[0]).toEqual(printed('ok: created action hello\n'));
  expect(outputs[1]).toEqual(printed('{\n    "greeting": "Hello, you!"\n}\n'));
  expect(outputs[2]).toEqual(
    printed(
      expect.stringMatching(
        /^Datetime +Activation ID +Kind +Start +Duration +Status +Entity *\n\S+ \S+ [0-9a-f]{32} nodejs:\d+ cold +\S+ +success guest\/hello:0\.0\.1 *\n$/,
      ) as unknown as string,
    ),
  );
});

test("the README's lines that npm start prints", () => {
  const readme = readFileSync(join(repository, 'README.md'), 'utf8');
  const [, block = ''] = /and prints\n\n```\n([^]*?)```/.exec(readme) ?? [];
  const lines = (text: string): string[] => text.replace(/127\.0\.0\.1:\d+/g, 'ADDRESS').split('\n');
  // The lines about GPUs depend on the machine.
  const told = lines(block).filter((line) => line !== '' && !line.startsWith('No GPU'));
  expect(told).toHaveLength(4);
  expect(lines(platform.output())).toEqual(expect.arrayContaining(told));
});

test('the lines that the platform prints for its user to type', async () => {
  const typed = platform
    .output()
    .split('\n')
    .filter((line) => line.includes('./bin/wsk --'));
  expect(typed).toHaveLength(2);
  const [, ...words] = (typed[1] ?? '').trim().split(' ');
  expect(await wsk(words, [])).toEqual(printed('{\n    "greeting": "Hello, you!"\n}\n'));
});

test('an application error and a crash end with the status of the answer', async () => {
  expect(await wsk('action create fail fail.js')).toEqual(printed('ok: created action fail\n'));
  const failed = await wsk('action invoke fail --result --param how error');
  expect(failed).toMatchObject({ code: 246, stdout: '' });
  expect(failed.stderr).toContain('"error": "no such thing"');
  const whole = await wsk('action invoke fail --blocking --param how exit');
  expect(whole).toMatchObject({ code: 246, stdout: '' });
  expect(whole.stderr).toMatch(/^ok: invoked \/_\/fail with id [0-9a-f]{32}\n\{\n/);
  expect(whole.stderr).toContain('The action did not produce a valid response and exited unexpectedly.');
  const record = await recorded(id(whole.stderr));
  expect(record.response.status).toBe('action developer error');
  expect((await wsk(`activation logs ${record.activationId} --strip`)).stdout).toBe(
    'about to fail\nThe action did not initialize or run as expected. Log data might be missing.\n',
  );
});

test.each<[string, number, RegExp]>([
  [
    'action get nothing',
    148,
    /^error: Unable to get action 'nothing': The requested resource does not exist\. \(code /,
  ],
  ['action invoke nothing', 148, /^error: Unable to invoke action 'nothing': The requested resource does not exist\. /],
  ['action delete nothing', 148, /^error: Unable to delete action 'nothing': The requested resource does not exist\. /],
  ['action create hello fail.js', 153, /^error: Unable to create action 'hello': resource already exists \(code /],
  [
    'action create x fail.js --kind cobol:1',
    144,
    /The specified runtime 'cobol:1' is not supported by this platform\. /,
  ],
  ['action create x fail.js --memory 9999', 144, /memory size 9999 MB exceeds allowed threshold of 4096 MB/],
  ['action create x missing.js', 2, /missing\.js/],
  ['action get /whisk.system/hello', 147, /The supplied authentication is not authorized to access/],
  [`activation get ${'0'.repeat(32)}`, 148, /The requested resource does not exist\. \(code /],
  ['action list --limit 201', 144, /The value '201' is not in the range of 0 to 200 for actions\./],
  ['no-such-command', 1, /no-such-command/],
])('wsk %s exits with %i', async (line, code, stderr) => {
  const result = await wsk(line);
  expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(stderr) });
});

test('a wrong key, and nobody there', async () => {
  const wrong = await wsk('action list', ['--apihost', platform.url, '--auth', 'some:body']);
  expect(wrong).toMatchObject({ code: 145, stdout: '' });
  expect(wrong.stderr).toContain('The supplied authentication is invalid (code ');
  const nobody = await wsk('action list', ['--apihost', 'http://127.0.0.1:1', '--auth', platform.auth]);
  expect(nobody).toMatchObject({ code: 3, stdout: '' });
});

test('activation get, logs, result and poll', async () => {
  const started = await wsk('action invoke fail');
  expect(started.stdout).toMatch(/^ok: invoked \/_\/fail with id [0-9a-f]{32}\n$/);
  const activationId = id(started.stdout);
  await recorded(activationId);
  expect(await wsk(`activation result ${activationId}`)).toEqual(printed('{\n    "fine": true\n}\n'));
  expect(await wsk('activation result --last')).toEqual(printed('{\n    "fine": true\n}\n'));
  expect((await wsk(`activation logs ${activationId}`)).stdout).toMatch(/^\S+Z +stdout: about to fail\n$/);
  const got = await wsk(`activation get ${activationId}`);
  expect(got.stdout).toMatch(new RegExp(`^ok: got activation ${activationId}\n\\{\n`));
  expect(JSON.parse(got.stdout.slice(got.stdout.indexOf('{')))).toMatchObject({
    activationId,
    response: { status: 'success', statusCode: 0, success: true, result: { fine: true } },
    logs: [expect.stringMatching(/ stdout: about to fail$/)],
  });
  const polled = wsk('activation poll --exit 4');
  await new Promise((done) => setTimeout(done, 500));
  const next = id((await wsk('action invoke fail --param how later')).stdout);
  const { code, stdout } = await polled;
  expect(code).toBe(0);
  expect(stdout).toContain(`Activation: 'fail' (${next})`);
  expect(stdout).toContain('stdout: about to fail');
});

test('an update keeps what it is not told', async () => {
  const create = [
    'action',
    'create',
    'kept',
    'fail.js',
    '-a',
    'team',
    '"a"',
    '-p',
    'how',
    'later',
    '-m',
    '128',
    '-t',
    '7000',
  ];
  expect(await wsk(create)).toEqual(printed('ok: created action kept\n'));
  expect(await wsk('action update kept --logsize 1 --concurrency 3 -a level 2')).toEqual(
    printed('ok: updated action kept\n'),
  );
  const { stdout } = await wsk('action get kept');
  const action = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Record<string, unknown>;
  expect(action).toMatchObject({
    version: '0.0.2',
    limits: { timeout: 7000, memory: 128, logs: 1, concurrency: 3 },
    parameters: [{ key: 'how', value: 'later' }],
    annotations: expect.arrayContaining([
      { key: 'team', value: 'a' },
      { key: 'level', value: 2 },
    ]),
  });
  expect(await wsk('action update kept --del-annotation level')).toMatchObject({ code: 0 });
  expect((await wsk('action get kept annotations')).stdout).not.toContain('level');
  expect(await wsk('action delete kept')).toEqual(printed('ok: deleted action kept\n'));
});

test('action get --save gives back source and zip', async () => {
  expect((await wsk('action get fail --save-as saved.js')).stdout).toContain('ok: saved action code to ');
  expect(readFileSync(join(folder, 'saved.js'), 'utf8')).toBe(readFileSync(join(folder, 'fail.js'), 'utf8'));
  const zip = new AdmZip();
  zip.addFile('index.js', Buffer.from('exports.main = () => ({ zipped: true });'));
  zip.writeZip(join(folder, 'zipped.zip'));
  expect(await wsk('action create zipped zipped.zip')).toMatchObject({ code: 2, stdout: '' });
  expect(await wsk('action create zipped zipped.zip --kind nodejs:default')).toMatchObject({ code: 0 });
  expect(await wsk('action invoke zipped --result')).toEqual(printed('{\n    "zipped": true\n}\n'));
  expect((await wsk('action get zipped --save-as copy.zip')).code).toBe(0);
  expect(readFileSync(join(folder, 'copy.zip'))).toEqual(readFileSync(join(folder, 'zipped.zip')));
});

python('a Python function by its file name', async () => {
  writeFileSync(join(folder, 'add.py'), 'def main(args):\n  return {"sum": args["a"] + args["b"]}\n');
  expect(await wsk('action create add add.py')).toEqual(printed('ok: created action add\n'));
  expect(await wsk('action invoke add --result -p a 2 -p b 3')).toEqual(printed('{\n    "sum": 5\n}\n'));
  expect((await wsk('action list')).stdout).toMatch(/^actions\n[^]*\/guest\/add +private python:3\.\d+ *\n/);
});

test('credentials from ~/.wskprops and from the environment', async () => {
  const environment = { WHISK_APIHOST: platform.url, WHISK_AUTH: platform.auth };
  expect(await runWsk(['namespace', 'list'], { directory: folder, environment })).toEqual(
    printed('namespaces\nguest\n'),
  );
  writeFileSync(join(folder, '.wskprops'), `APIHOST=${platform.url}\nAUTH=${platform.auth}\n`);
  expect(await wsk('namespace list', [])).toEqual(printed('namespaces\nguest\n'));
});
