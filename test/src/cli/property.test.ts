import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorWithHint } from './cases.js';
import { startFakeOpenWhisk, type FakeOpenWhisk } from './fake-openwhisk.js';
import { certificate, privateKey } from './self-signed.js';
import { runWsk, type WskResult } from './wsk-process.js';

let server: FakeOpenWhisk;
let home: string;

beforeAll(async () => {
  server = await startFakeOpenWhisk();
});
afterAll(() => server.close());

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'wsk-home-'));
  server.expect([]);
});
afterEach(() => rm(home, { recursive: true, force: true }));

const wsk = (line: string, environment: Record<string, string> = {}): Promise<WskResult> =>
  runWsk(line.split(' '), { directory: home, environment });
const succeeds = (stdout: string): WskResult => ({ code: 0, stdout, stderr: '' });
const properties = (): Promise<string> => readFile(join(home, '.wskprops'), 'utf8');
const hostMissing = errorWithHint('The API host is not valid: An API host must be provided.\n');

test('set writes the properties file, get shows it, unset removes from it', async () => {
  expect(await wsk('property set --auth u:k')).toEqual(
    succeeds("ok: whisk auth set. Run 'wsk property get --auth' to see the new value.\n"),
  );
  expect(await properties()).toBe('AUTH=u:k\n');
  await writeFile(join(home, 'c'), certificate);
  await writeFile(join(home, 'k'), privateKey);
  expect(await wsk('property set --apihost https://h:1/ --apiversion v2 --cert c --key k')).toEqual(
    succeeds(
      "ok: client cert set. Run 'wsk property get --cert' to see the new value.\n" +
        "ok: client key set. Run 'wsk property get --key' to see the new value.\n" +
        'ok: whisk API host set to https://h:1/\nok: whisk API version set to v2\n',
    ),
  );
  expect((await properties()).split('\n').sort().join(' ')).toBe(
    ' APIHOST=https://h:1/ APIVERSION=v2 AUTH=u:k CERT=c KEY=k',
  );
  expect(await wsk('property unset --cert --key')).toEqual(succeeds('ok: client cert unset.\nok: client key unset.\n'));
  expect(await wsk('property get --apihost --auth --apiversion --cert --key')).toEqual(
    succeeds(
      'whisk API host\t\thttps://h:1\nwhisk auth\t\tu:k\nclient cert\t\t\nClient key\t\t\nwhisk API version\tv2\n',
    ),
  );
  expect(await wsk('property get --auth -o raw')).toEqual(succeeds('u:k\n'));
  expect(await wsk('property unset --auth --apihost --apiversion')).toEqual(
    succeeds(
      'ok: whisk auth unset.\nok: whisk API host unset.\n' +
        'ok: whisk API version unset; the default value of v1 will be used.\n',
    ),
  );
  expect(await properties()).toBe('');
});

test('set keeps no certificate that cannot be used', async () => {
  await writeFile(join(home, '.wskprops'), `APIHOST=${server.url}\n`);
  const refused = (reason: string): WskResult => ({
    code: 1,
    stdout: '',
    stderr: errorWithHint(`Unable to initialize server connection: ${reason}`),
  });
  expect(await wsk('property set --cert c')).toEqual(
    refused('The Key file is not configured. Please configure the missing Key file.\n'),
  );
  expect(await wsk('property set --cert c --key k')).toEqual(
    refused('Unable to load the X509 key pair due to the following reason: open c: no such file or directory'),
  );
  expect(await properties()).toBe(`APIHOST=${server.url}\n`);
});

test('get asks the server for namespace and build', async () => {
  await writeFile(join(home, '.wskprops'), `APIHOST=${server.url}\nAUTH=u:k\n`);
  server.expect([
    [200, ['guest']],
    [200, { build: 'b1', buildno: 'n1' }],
  ]);
  const { stdout, ...rest } = await wsk('property get');
  expect(rest).toEqual({ code: 0, stderr: '' });
  expect(stdout.replace(/(CLI version\t).*/, '$1V')).toBe(
    `whisk API host\t\t${server.url}\nwhisk auth\t\tu:k\nwhisk namespace\t\tguest\nclient cert\t\t\nClient key\t\t\n` +
      'whisk API version\tv1\nwhisk CLI version\tV\nwhisk API build\t\tb1\nwhisk API build number\tn1\n',
  );
  expect(server.requests.map(({ line }) => line)).toEqual(['GET /api/v1/namespaces', 'GET /api/v1']);
});

test('get without a server says what it cannot know and fails', async () => {
  await writeFile(join(home, '.wskprops'), 'APIHOST=http://127.0.0.1:1\nAUTH=u:k\n');
  const refused = 'dial tcp 127.0.0.1:1: connect: connection refused';
  expect(await wsk('property get --namespace --apibuild --apibuildno')).toEqual({
    code: 3,
    stdout: 'whisk namespace\t\t_\nwhisk API build\t\tUnknown\nwhisk API build number\tUnknown\n',
    stderr: `error: Unable to obtain API build information: Get "http://127.0.0.1:1/api/v1": ${refused}\n`,
  });
});

test.each([
  ['property get', 1, hostMissing],
  ['property get --namespace', 1, hostMissing],
  ['property get --auth -o x', 1, 'error: Supported output format are std|raw\n'],
  ['action list', 1, hostMissing],
])('wsk %s without properties', async (line, code, stderr) => {
  expect(await wsk(line)).toEqual({ code, stdout: '', stderr });
});

test('get --all has no raw output', async () => {
  expect(await wsk('property get --all -o raw', { WHISK_APIHOST: server.url })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: --output|-o raw only supported with specific property type\n',
  });
});

test('an invalid host is refused; the other properties are set', async () => {
  const result = await wsk('property set --apihost http://:x --auth u:k');
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("error: Unable to set API host value; the API host value 'http://:x' is invalid: ");
  expect(await properties()).toBe('AUTH=u:k\n');
});

/** The host and key of each request of `action list`, for each combination of sources. */
test.each([
  ['the properties file', '', {}, '/api/v2', 'file:key'],
  ['the environment', '', { WHISK_AUTH: 'env:key', WHISK_APIVERSION: 'v3' }, '/api/v3', 'env:key'],
  ['flags', ' -u flag:key --apiversion v4', { WHISK_AUTH: 'env:key', WHISK_APIVERSION: 'v3' }, '/api/v4', 'flag:key'],
])('settings come from %s', async (_, flags, environment, path, key) => {
  const file = `# comment\nAUTH=file:key # more\nnonsense\na=b=c\nAPIVERSION=v2\nAPIHOST=${server.url}\n`;
  await writeFile(join(home, '.wskprops'), file);
  server.expect([[200, []]]);
  expect(await wsk(`action list${flags}`, environment)).toEqual(succeeds('actions\n'));
  expect(server.requests[0]?.line).toBe(`GET ${path}/namespaces/_/actions?limit=30&skip=0`);
  expect(server.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from(key).toString('base64')}`);
  expect(server.requests[0]?.headers['user-agent']).toMatch(/^OpenWhisk-CLI\/1\.0 \(.+\) [a-z0-9]+ [a-z0-9]+$/);
  expect(await properties()).toBe(file);
});

test('WSK_CONFIG_FILE replaces ~/.wskprops, and an empty one stands for none', async () => {
  await writeFile(join(home, '.wskprops'), 'AUTH=home\n');
  await writeFile(join(home, 'other'), 'AUTH=other\n');
  const other = { WSK_CONFIG_FILE: join(home, 'other') };
  expect(await wsk('property get --auth -o raw', other)).toEqual(succeeds('other\n'));
  expect(await wsk('property get --auth -o raw', { WSK_CONFIG_FILE: '' })).toEqual(succeeds('\n'));
  await wsk('property set --auth new', other);
  expect(await readFile(join(home, 'other'), 'utf8')).toBe('AUTH=new\n');
  expect(await properties()).toBe('AUTH=home\n');
});

test('a properties file that cannot be written is an error', async () => {
  expect((await wsk('property set --auth x', { WSK_CONFIG_FILE: join(home, 'no', 'folder') })).code).toBe(1);
});
