// The examples, run by the commands of their READMEs.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import AdmZip from 'adm-zip';
import { runWsk } from '../cli/wsk-process.js';
import type { ApiActivation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const run = promisify(execFile);
const examples = fileURLToPath(new URL('../../../examples', import.meta.url));
const python = hasPython ? test : test.skip;
/** Installs real packages, from the index that pip is configured for. */
const withPackages = process.env.TEST_ALL === '1' && hasPython ? test : test.skip;
let platform: RunningPlatform;
let scratch: string;

beforeAll(async () => {
  platform = await startPlatform();
  scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-examples-'));
});
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true });
  await platform.stop();
});

async function wsk(...words: string[]): Promise<string> {
  const flags = ['--apihost', platform.url, '--auth', platform.auth];
  const { code, stdout, stderr } = await runWsk([...flags, ...words], { directory: scratch });
  if (code !== 0) throw new Error(`wsk ${words.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

test('hello', async () => {
  await wsk('action', 'create', 'hello', join(examples, 'hello/hello.js'));
  const result = await wsk('action', 'invoke', 'hello', '--result', '--param', 'name', 'Ada');
  expect(JSON.parse(result)).toEqual({ greeting: 'Hello, Ada!' });
});

python('hello in Python', async () => {
  await wsk('action', 'create', 'hello-python', join(examples, 'hello/hello.py'));
  const result = await wsk('action', 'invoke', 'hello-python', '--result');
  expect(JSON.parse(result)).toEqual({ greeting: 'Hello, stranger!' });
});

test('a zip with dependencies', async () => {
  const folder = join(examples, 'zip-with-dependencies');
  const installed = fileURLToPath(new URL('../../../node_modules/ms', import.meta.url));
  const archive = join(scratch, 'action.zip');
  // The archive that build.mjs makes, without a registry: its one package is in node_modules already, at the requested
  // version.
  const zip = new AdmZip();
  for (const name of ['index.js', 'package.json']) zip.addLocalFile(join(folder, name));
  zip.addLocalFolder(installed, 'node_modules/ms');
  zip.writeZip(archive);
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { dependencies: object };
  const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { version: string };
  expect(dependencies).toEqual({ ms: version });
  await wsk('action', 'create', 'duration', archive, '--kind', 'nodejs:default');
  const result = await wsk('action', 'invoke', 'duration', '--result', '--param', 'duration', '2 days');
  expect(JSON.parse(result)).toEqual({ milliseconds: 172_800_000, words: '2 days' });
  await expect(wsk('action', 'invoke', 'duration', '--result', '--param', 'duration', 'x y')).rejects.toThrow(
    'ended with 246: {\n    "error": "\'x y\' is not a duration."',
  );
});

withPackages(
  "text recognition reads its sample picture by the README's line",
  async () => {
    const repository = join(examples, '..');
    const readme = readFileSync(join(repository, 'README.md'), 'utf8');
    const [, line = ''] = /^node (.*text-recognition.*)$/m.exec(readme) ?? [];
    // The settings that the README makes before, for the running platform.
    const server = { WSK_CONFIG_FILE: '', WHISK_APIHOST: platform.url, WHISK_AUTH: platform.auth };
    const { stdout } = await run(process.execPath, line.split(' '), {
      cwd: repository,
      timeout: 280_000,
      env: { ...process.env, NODE_OPTIONS: '', ...server },
    });
    expect(stdout.replaceAll(' ', '')).toContain('Invoice2024-0815');
  },
  300_000,
);

test('a feed, called at each step of a trigger that names it', async () => {
  await wsk('action', 'create', 'topics', join(examples, 'feed/feed.js'), '--annotation', 'feed', 'true');
  await wsk('trigger', 'create', 'news', '--feed', 'topics', '--feed-param', 'topic', 'weather');
  await wsk('trigger', 'get', 'news');
  await wsk('trigger', 'update', 'news', '--feed-param', 'topic', 'sports');
  await wsk('trigger', 'delete', 'news');
  let records: ApiActivation[] = [];
  await until('the four calls are recorded', async () => {
    records = (await platform.api.request<ApiActivation[]>('GET', '_/activations?name=topics&docs=true')).body;
    return records.length >= 4;
  });
  const calls = records.map(({ response }) => response.result).reverse();
  const call = { triggerName: '/_/news', mayFire: true };
  expect(calls).toEqual([
    { ...call, lifecycleEvent: 'CREATE', topic: 'weather' },
    { ...call, lifecycleEvent: 'READ', topic: null },
    { ...call, lifecycleEvent: 'UPDATE', topic: 'sports' },
    { ...call, lifecycleEvent: 'DELETE', topic: null },
  ]);
  await expect(wsk('trigger', 'create', 'mute', '--feed', 'topics')).rejects.toThrow(
    'The feed needs to know the topic',
  );
  expect((await platform.api.request('GET', '_/triggers/mute')).status).toBe(404);
});

test('a rule that greets', async () => {
  await wsk('trigger', 'create', 'greeted');
  await wsk('rule', 'create', 'greet', 'greeted', 'hello');
  const fired = await wsk('trigger', 'fire', 'greeted', '--param', 'name', 'Ada');
  const record = await platform.api.record(/[0-9a-f]{32}/.exec(fired)?.[0]);
  const [line = '{}'] = record.logs;
  const { activationId } = JSON.parse(line) as { activationId: string };
  expect((await platform.api.record(activationId)).response.result).toEqual({ greeting: 'Hello, Ada!' });
});
