// Migration from one running platform, in the role of an OpenWhisk, to another one.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const binary = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
const storage = { current: 'aes-256', keys: { 'aes-256': [Buffer.alloc(32, 7).toString('base64')] } };
const flags = ['--set', `parameterStorage=${JSON.stringify(storage)}`];

let source: RunningPlatform;
let target: RunningPlatform;
beforeAll(async () => {
  [source, target] = await Promise.all([startPlatform(), startPlatform({ flags })]);
});
afterAll(() => Promise.all([source?.stop(), target?.stop()]));

/** Runs the migration; `during` may end the process, which then copies one entity at a time. */
async function migrate(during?: (kill: () => void) => Promise<void>): Promise<{ code: number | null; stdout: string }> {
  const words = ['--from', source.url, '--auth', source.auth, '--to', target.url, '--to-auth', target.auth];
  const pace = during === undefined ? [] : ['--concurrency', '1'];
  const child = spawn(process.execPath, [binary, 'migrate', ...words, ...pace], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  const ended = once(child, 'close') as Promise<[number | null]>;
  await during?.(() => child.kill('SIGKILL'));
  return { code: (await ended)[0], stdout };
}

async function put({ api }: RunningPlatform, path: string, body: unknown): Promise<void> {
  const answer = await api.request('PUT', `_/${path}`, body);
  expect([path, answer.status]).toEqual([path, 200]);
}

const actionsOf = async (api: ApiClient): Promise<number> =>
  Number((await api.request<JsonObject>('GET', '_/actions?count=true')).body.actions);

test('what came over runs: code, parameters that the target encrypts, sequences, rules', async () => {
  const exec = {
    kind: 'nodejs:default',
    code: 'function main({ secret, size, text }) { return { secret, size, text }; }',
  };
  await put(source, 'packages/tools', { parameters: [{ key: 'size', value: 4 }] });
  await put(source, 'actions/tools/show', { exec, parameters: [{ key: 'secret', value: 'hidden' }] });
  await put(source, 'packages/bound', { binding: { namespace: '_', name: 'tools' } });
  await put(source, 'actions/twice', { exec: { kind: 'sequence', components: ['/_/bound/show', '/_/tools/show'] } });
  await put(source, 'triggers/happened', {});
  await put(source, 'rules/run', { trigger: '/_/happened', action: '/_/twice' });
  expect(await migrate()).toMatchObject({ code: 0 });

  const shown = await target.api.request<JsonObject>('GET', '_/actions/tools/show');
  expect(shown.body.parameters).toContainEqual({ key: 'secret', value: expect.anything(), encryption: 'aes-256' });
  const { body } = await target.api.invokeForResult('twice', { text: 'a' });
  expect(body).toEqual({ secret: 'hidden', size: 4, text: 'a' });
  const fired = await target.api.request('POST', '_/triggers/happened', { text: 'b' });
  expect(fired.status).toBe(202);
  const { logs }: ApiActivation = await target.api.record(fired.activationId);
  const { activationId } = JSON.parse(logs[0] ?? '{}') as { activationId: string };
  expect((await target.api.record(activationId)).response.result).toEqual({ secret: 'hidden', size: 4, text: 'b' });
  expect((await migrate()).stdout).not.toContain('created');
});

test('a migration that was killed goes on', async () => {
  for (let number = 0; number < 300; number++) await source.api.putAction(`many${number}`, `// ${number}`);
  const before = await actionsOf(target.api);
  const killed = await migrate(async (kill) => {
    await until('some actions are there', async () => (await actionsOf(target.api)) > before + 5);
    kill();
  });
  expect(killed.code).toBe(null);
  expect(await migrate()).toMatchObject({ code: 0 });
  expect(await actionsOf(target.api)).toBe(await actionsOf(source.api));
});
