// OpenWhisk's WskAdminTests, and the other commands of tools/admin/wskadmin.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RefusedRecords } from '@gpuwhisk/common/activations/refused-records';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import { actionPath, alice, hello, operator, startApi } from '../api/harness.js';
import type { Api } from '../api/harness.js';
import { runBinary } from './wsk-process.js';
import type { WskResult } from './wsk-process.js';

const binary = fileURLToPath(new URL('../../../bin/wskadmin', import.meta.url));
const auth = `11111111-2222-4333-8444-555555555555:${'k'.repeat(64)}`;
const authKey = /^[0-9a-f-]{36}:[0-9A-Za-z]{64}\n$/;

let folder: string;
let api: Api;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'wskadmin-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const wskadmin = (...args: string[]): Promise<WskResult> => {
  const environment = { WHISK_APIHOST: api.url, WHISK_ADMIN_AUTH: `${operator.uuid}:${operator.key}` };
  return runBinary(binary, args, { directory: folder, environment });
};
const prints = (stdout: string, code = 0): WskResult => ({ code, stdout, stderr: '' });

test('a subject is created, looked up, deleted and created again with a given key', async () => {
  const created = await wskadmin('user', 'create', 'carol');
  expect(created).toEqual(prints(expect.stringMatching(authKey) as unknown as string));
  expect(await wskadmin('user', 'get', 'carol')).toEqual(created);
  expect(await wskadmin('user', 'whois', created.stdout.trim())).toEqual(prints('subject: carol\nnamespace: carol\n'));
  expect(await wskadmin('user', 'list', '-k', 'carol')).toEqual(created);
  expect(await wskadmin('user', 'list', 'carol')).toEqual(prints(`${created.stdout.trim()}\tcarol\n`));
  expect(await wskadmin('user', 'delete', 'carol')).toEqual(prints('Subject deleted\n'));
  expect(await wskadmin('user', 'whois', created.stdout.trim())).toEqual(prints('Subject id is not recognized\n'));
  expect(await wskadmin('user', 'list', 'carol')).toEqual(prints('no identities found for namespace "carol"\n'));
  expect(await wskadmin('user', 'create', 'carol', '-ns', 'carol.space', '-u', auth)).toEqual(prints(`${auth}\n`));
  expect(await wskadmin('user', 'get', 'carol', '-ns', 'carol.space')).toEqual(prints(`${auth}\n`));
  expect(await wskadmin('user', 'get', 'carol')).toEqual(prints('namespace "carol" not found for "carol"\n', 1));
  expect(await wskadmin('user', 'delete', 'carol', '-ns', 'carol.space')).toEqual(prints('Namespace deleted\n'));
  expect(await wskadmin('user', 'delete', 'carol', '-ns', 'carol.space')).toEqual(
    prints('Namespace "carol.space" does not exist for "carol"\n', 1),
  );
  expect(await wskadmin('user', 'delete', 'carol')).toEqual(prints('Subject deleted\n'));
  expect(await wskadmin('user', 'delete', 'carol')).toEqual(
    prints('Failed to delete subject (The requested resource does not exist.)\n', 1),
  );
});

test('all namespaces of a subject are listed, and a key is replaced', async () => {
  const first = await wskadmin('user', 'create', 'carol', '-ns', 'space1');
  const second = await wskadmin('user', 'create', 'carol', '--namespace=space2');
  expect(await wskadmin('user', 'get', 'carol', '--all')).toEqual(
    prints(`space1\t${first.stdout}space2\t${second.stdout}`),
  );
  expect(await wskadmin('user', 'create', 'carol', '-ns', 'space1')).toEqual(prints('Namespace already exists\n', 1));
  const anew = await wskadmin('user', 'create', 'carol', '-ns', 'space1', '-r');
  expect(anew.stdout).toMatch(authKey);
  expect(anew.stdout).not.toBe(first.stdout);
  expect(await wskadmin('user', 'get', 'carol', '-ns', 'space1')).toEqual(anew);
  expect(await wskadmin('user', 'create', 'carol', '-ns', 'space3', '-s')).toEqual(prints(''));
  expect((await wskadmin('user', 'create', 'david', '-g')).stdout).toMatch(authKey);
  expect((await wskadmin('user', 'get', 'david')).code).toBe(1);
});

test('subjects are blocked and unblocked', async () => {
  await wskadmin('user', 'create', 'carol', '-ns', 'shared', '-u', auth);
  const david = await wskadmin('user', 'create', 'david', '-ns', 'shared');
  const keys = async (): Promise<string[]> =>
    (await wskadmin('user', 'list', '-p', '2', '-k', 'shared')).stdout.trim().split('\n').sort();
  expect(await keys()).toEqual([auth, david.stdout.trim()].sort());
  expect((await wskadmin('user', 'list', '-k', 'shared')).stdout.trim().split('\n')).toHaveLength(1);
  expect(await wskadmin('user', 'block', 'carol')).toEqual(prints('"carol" blocked successfully\n'));
  expect(await keys()).toEqual([david.stdout.trim()]);
  expect(await wskadmin('user', 'create', 'carol', '-ns', 'more')).toEqual(
    prints('The subject you want to edit is blocked\n', 1),
  );
  expect(await wskadmin('user', 'block', 'carol', 'david', '', ' ')).toEqual(
    prints('"carol" blocked successfully\n"david" blocked successfully\n'),
  );
  expect(await wskadmin('user', 'unblock', 'carol', 'nobody', 'david', '')).toEqual(
    prints(
      '"carol" unblocked successfully\n' +
        'Failed to unblock "nobody" (The requested resource does not exist.)\n' +
        '"david" unblocked successfully\n',
      1,
    ),
  );
  expect(await keys()).toHaveLength(2);
  expect((await wskadmin('user', 'create', 'carol', '-ns', 'more')).code).toBe(0);
});

test('limits are set, shown in order and deleted', async () => {
  const set = ['limits', 'set', 'carol'];
  expect(await wskadmin(...set, '--firesPerMinute', '5')).toEqual({
    ...prints('Limits successfully set for "carol"\n'),
    stderr: 'wskadmin: warning: No subject has namespace "carol" yet.\n',
  });
  await wskadmin('user', 'create', 'carol');
  const done = prints('Limits successfully set for "carol"\n');
  const rates = ['--invocationsPerMinute', '1', '--firesPerMinute', '2', '--concurrentInvocations', '3'];
  expect(await wskadmin(...set, ...rates)).toEqual(done);
  const shown = 'invocationsPerMinute = 1\nfiresPerMinute = 2\nconcurrentInvocations = 3\n';
  expect(await wskadmin('limits', 'get', 'carol')).toEqual(prints(shown));
  expect(await wskadmin(...set, '--storeActivations', 'no', '--allowedKinds', 'nodejs:20', 'blackbox')).toEqual(done);
  expect(await wskadmin(...set, '--firesPerMinute', '0', '--maxPayloadSize', '2 MB')).toEqual(done);
  expect(await wskadmin('limits', 'get', 'carol')).toEqual(
    prints(
      'invocationsPerMinute = 1\nfiresPerMinute = 0\nconcurrentInvocations = 3\n' +
        "allowedKinds = ['nodejs:20', 'blackbox']\nstoreActivations = False\nmaxPayloadSize = 2 MB\n",
    ),
  );
  const gpus = ['--concurrentGpuInvocations', '4', '--concurrentGpus', '2', '--concurrentGpuMemory', '16384'];
  gpus.push('--gpuSecondsPerMinute', '30', '--maxGpuShare', '50', '--warmGpuContainers', '2');
  expect(await wskadmin(...set, ...gpus)).toEqual(done);
  expect((await wskadmin('limits', 'get', 'carol')).stdout).toContain(
    'concurrentInvocations = 3\nconcurrentGpuInvocations = 4\nconcurrentGpus = 2\nconcurrentGpuMemory = 16384\n' +
      'gpuSecondsPerMinute = 30\nmaxGpuShare = 50\nwarmGpuContainers = 2\n',
  );
  expect((await wskadmin(...set, '--maxGpuShare', '9')).stdout).toMatch(
    /^Failed to set limits \([^)]*'maxGpuShare' must be a whole number of percent from 10 to 100\)/,
  );
  expect((await wskadmin(...set, '--maxPayloadSize', 'much')).stdout).toMatch(/^Failed to set limits \(/);
  expect(await wskadmin('limits', 'delete', 'carol')).toEqual(prints('Limits deleted\n'));
  expect(await wskadmin('limits', 'get', 'carol')).toEqual(prints('No limits found, default system limits apply\n'));
  expect(await wskadmin('limits', 'delete', 'carol')).toEqual(
    prints('Failed to delete limits (The requested resource does not exist.)\n', 1),
  );
});

test('databases are shown whole', async () => {
  await api.request('PUT', actionPath('hello'), { body: hello });
  for (let number = 0; number < 600; number++) {
    await api.store.put('subjects', { _id: `many${String(number).padStart(3, '0')}/limits`, invocationsPerMinute: 0 });
  }
  const contents = async (...args: string[]): Promise<{ title: string; rows: { id: string; doc?: unknown }[] }> => {
    const { code, stdout } = await wskadmin('db', 'get', ...args);
    expect(code).toBe(0);
    const end = stdout.indexOf('\n');
    return { title: stdout.slice(0, end), ...(JSON.parse(stdout.slice(end)) as { rows: { id: string }[] }) };
  };
  const whisks = await contents('whisks', '--docs');
  expect(whisks.title).toBe('getting contents for whisks (primary index)');
  expect(whisks.rows).toEqual([
    { id: 'alice/hello', key: 'alice/hello', value: expect.anything(), doc: expect.anything() },
  ]);
  const subjects = await contents('subjects');
  expect(new Set(subjects.rows.map(({ id }) => id)).size).toBe(603);
  const blocked = await contents('subjects', '-w', 'namespaceThrottlings/blockedNamespaces');
  expect(blocked.title).toBe('getting contents for subjects (namespaceThrottlings/blockedNamespaces)');
  expect(new Set(blocked.rows.map(({ id }) => id)).size).toBe(600);
  const view = 'view name "actions" is not formatted correctly, should be design/view\n';
  expect(await wskadmin('db', 'get', 'whisks', '-w', 'actions')).toEqual(prints(view, 2));
  expect((await wskadmin('db', 'get', 'nothing')).stdout).toContain('Failed to get database (There is no database');
});

test('the log is shown', async () => {
  const headers = { 'x-ow-extra-logging': 'on', 'x-request-id': 'the-one' };
  await api.request('GET', actionPath('nothing'), { headers });
  const { code, stdout } = await wskadmin('syslog', 'get', '-t', 'the-one');
  expect(code).toBe(0);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { transid: string }).transid),
  ).toContain('the-one');
  expect(await wskadmin('syslog', 'get', 'controller0', '-g', 'no such text')).toEqual(prints(''));
});

test.each([
  [[], /invalid choice/],
  [['user'], /invalid choice/],
  [['user', 'forget', 'x'], /invalid choice/],
  [['user', 'create'], /the following arguments are required: subject/],
  [['user', 'create', 'carol', 'david'], /unrecognized arguments: david/],
  [['user', 'create', 'carol', '--nothing'], /unrecognized arguments: --nothing/],
  [['user', 'create', 'carol', '-u'], /argument --auth\/-u: expected one argument/],
  [['user', 'block'], /required: subjects/],
  [['limits', 'set', 'carol', '--firesPerMinute', 'many'], /invalid int value: 'many'/],
  [['limits', 'set', 'carol', '--storeActivations', 'perhaps'], /perhaps is not a valid boolean/],
])('wskadmin %j is a usage error', async (args, text) => {
  const { code, stdout, stderr } = await wskadmin(...args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^usage: wskadmin/);
  expect(stderr).toMatch(text);
});

test.each([
  [['user', 'create', 'abc'], 'Subject name must be at least 5 characters\n'],
  [['user', 'create', 'carol', '-ns', ' '], 'Namespace must not be empty\n'],
  [['user', 'create', 'carol', '-u', 'x:y'], 'authorization id is not a valid UUID\n'],
  [
    ['user', 'create', 'carol', '-u', '11111111-2222-4333-8444-555555555555:short'],
    'authorization key must be at least 64 characters long\n',
  ],
  [['user', 'delete', ' '], 'Subject must not be empty\n'],
  [['user', 'list', 'carol', '-p', '0'], 'pick at least 1 identity to show\n'],
])('wskadmin %j is refused with exit code 2', async (args, text) => {
  expect(await wskadmin(...args)).toEqual(prints(text, 2));
});

test("the key of this machine's standalone server is found in its data folder, and sent to no other host", async () => {
  const data = join(folder, 'data');
  await mkdir(data);
  await writeFile(join(data, 'operator.key'), `${operator.uuid}:${operator.key}\n`, { mode: 0o600 });
  const environment = { GPUWHISK_DATA_DIR: data, HOME: folder };
  const run = (...args: string[]) => runBinary(binary, args, { directory: folder, environment });
  const get = ['user', 'get', 'alice-subject', '-ns', 'alice'];
  expect(await run('--apihost', api.url, ...get)).toEqual(prints(`${alice.uuid}:${alice.key}\n`));
  expect(await run('--apihost', `http://localhost:${api.port}`, ...get)).toEqual(
    prints(`${alice.uuid}:${alice.key}\n`),
  );
  const gpuwhisk = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
  const shown = (...args: string[]) =>
    runBinary(gpuwhisk, ['operator-key', ...args], { directory: folder, environment: { HOME: folder } });
  expect(await shown('--data', data)).toEqual(prints(`${operator.uuid}:${operator.key}\n`));
  expect(await shown()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining("'.gpuwhisk'") });
  // An address that leads to this machine but is not a loopback address.
  const heard: (string | undefined)[] = [];
  const other = await systemNetwork.listen(
    (request, response) => {
      heard.push(request.headers.authorization);
      response.writeHead(401).end();
    },
    { host: '0.0.0.0', port: 0 },
  );
  await run('--apihost', `http://0.0.0.0:${other.port}`, ...get);
  await other.close(0);
  expect(heard).toEqual(['Basic']);
});

test('host and key come from flags, environment or properties; others than operators are refused', async () => {
  const refused =
    "The supplied authentication is not authorized to access this resource, which is for operators. On the machine of a standalone server, gpuwhisk operator-key shows an operator's key.";
  const flags = ['--apihost', api.url, '--auth', `${alice.uuid}:${alice.key}`];
  expect(await wskadmin(...flags, 'user', 'get', 'alice-subject')).toEqual(
    prints(`Failed to get subject (${refused})\n`, 1),
  );
  await writeFile(
    join(folder, '.wskprops'),
    `APIHOST=${api.url}\nAUTH=x:y\nADMIN_AUTH=${operator.uuid}:${operator.key}\n`,
  );
  const own = await runBinary(binary, ['user', 'get', 'alice-subject', '-ns', 'alice'], { directory: folder });
  expect(own).toEqual(prints(`${alice.uuid}:${alice.key}\n`));
  await rm(join(folder, '.wskprops'));
  const nowhere = await runBinary(binary, ['user', 'get', 'alice'], { directory: folder });
  expect(nowhere).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('API host') });
  const nobody = await wskadmin('--apihost', 'http://127.0.0.1:1', 'user', 'get', 'alice');
  expect(nobody).toMatchObject({ code: 1, stdout: expect.stringContaining('connection refused') });
  expect(await wskadmin('--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('user create') });
  expect(await wskadmin('user', 'list', '-h')).toMatchObject({ code: 0, stdout: expect.stringContaining('--pick') });
});

test('records that the store refuses are listed, read and deleted', async () => {
  const aside = new RefusedRecords(api.store, systemClock, createLogger({ level: 'silent' }));
  const record = { _id: 'alice/0a', activationId: '0a', response: { statusCode: 0, result: { text: '\ud800' } } };
  await aside.keep(record, 'invalid UTF-8 JSON');
  await aside.keep({ _id: 'alice/0b' }, 'no such records here');
  const { code, stdout } = await wskadmin('refused', 'list');
  expect(code).toBe(0);
  expect(stdout.split('\n').map((line) => line.split('\t').filter((_, at) => at !== 1))).toEqual([
    ['alice/0a', expect.stringMatching(/^\d+ bytes$/), 'invalid UTF-8 JSON'],
    ['alice/0b', expect.stringMatching(/^\d+ bytes$/), 'no such records here'],
    [''],
  ]);
  expect(JSON.parse((await wskadmin('refused', 'get', 'alice/0a')).stdout)).toEqual(record);
  expect(await wskadmin('refused', 'delete', 'alice/0a', 'alice/0c', 'alice/0b')).toEqual(
    prints(
      [
        'Refused record alice/0a deleted',
        'Failed to delete alice/0c (The requested resource does not exist.)',
        'Refused record alice/0b deleted\n',
      ].join('\n'),
      1,
    ),
  );
  expect(await wskadmin('refused', 'list')).toEqual(prints(''));
  expect(await wskadmin('refused', 'get', 'alice/0a')).toMatchObject({ code: 1 });
  const refused = await api.request('GET', '/api/v1/admin/refused-records', { as: alice });
  expect(refused.status).toBe(403);
});
