// Fires of triggers on the real platform: from the trigger's record to those of the actions that its rules ran.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { newDataDir, removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const echo = 'function main(args) { return { args }; }';
const counted = 'function main({ text }) { return { words: text.split(" ").length, text }; }';

let dataDir: string;
let platform: RunningPlatform;
let ended = false;
beforeAll(async () => {
  dataDir = newDataDir();
  platform = await startPlatform({ dataDir });
});
afterAll(async () => {
  if (!ended) await platform.end('SIGTERM');
  removeDataDir(dataDir);
});

async function put(api: ApiClient, path: string, body: unknown): Promise<void> {
  const answer = await api.request('PUT', `_/${path}`, body);
  if (answer.status !== 200) throw new Error(`PUT of ${path} was answered ${answer.status}`);
}

interface RuleLine {
  success: boolean;
  activationId?: string;
  rule: string;
  action: string;
}
const linesOf = ({ logs }: ApiActivation): RuleLine[] => logs.map((line) => JSON.parse(line) as RuleLine);

/** Fires and resolves with the trigger's record, which exists as soon as the fire is answered. */
async function fire(api: ApiClient, trigger: string, payload: object): Promise<ApiActivation> {
  const { status, activationId } = await api.request('POST', `_/triggers/${trigger}`, payload);
  expect(status).toBe(202);
  const record = await api.request<ApiActivation>('GET', `_/activations/${activationId}`);
  expect(record.status).toBe(200);
  return record.body;
}

test('a fire runs actions, packaged ones, bindings and sequences, and its record leads to theirs', async () => {
  const { api } = platform;
  await api.putAction('counted', counted);
  await put(api, 'packages/tools', { parameters: [{ key: 'from', value: 'package' }] });
  await put(api, 'actions/tools/echo', { exec: { kind: 'nodejs:default', code: echo } });
  await put(api, 'packages/bound', {
    binding: { namespace: '_', name: 'tools' },
    parameters: [{ key: 'from', value: 'binding' }],
  });
  await put(api, 'actions/twice', { exec: { kind: 'sequence', components: ['/_/counted', '/_/counted'] } });
  await put(api, 'triggers/happened', { parameters: [{ key: 'kept', value: 1 }] });
  for (const action of ['counted', 'tools/echo', 'bound/echo', 'twice']) {
    await put(api, `rules/on-${action.replace('/', '-')}`, { trigger: '/_/happened', action: `/_/${action}` });
  }

  const record = await fire(api, 'happened', { text: 'a b c' });
  expect(record).toMatchObject({ name: 'happened', response: { success: true, result: { text: 'a b c' } } });
  expect(record).not.toHaveProperty('end');
  const lines = linesOf(record);
  expect(lines.map(({ rule, action, success }) => [rule, action, success])).toEqual([
    ['guest/on-counted', 'guest/counted', true],
    ['guest/on-tools-echo', 'guest/tools/echo', true],
    ['guest/on-bound-echo', 'guest/bound/echo', true],
    ['guest/on-twice', 'guest/twice', true],
  ]);
  const [plain, packaged, bound, sequence] = await Promise.all(lines.map((line) => api.record(line.activationId)));
  expect(plain?.response.result).toEqual({ words: 3, text: 'a b c' });
  expect(plain).not.toHaveProperty('cause');
  const args = { text: 'a b c', kept: 1, __ow_headers: expect.objectContaining({ host: expect.any(String) }) };
  expect(packaged?.response.result.args).toMatchObject({ ...args, from: 'package' });
  expect(bound?.response.result.args).toMatchObject({ ...args, from: 'binding' });
  expect(sequence?.response.result).toEqual({ words: 3, text: 'a b c' });
});

test('what a fire was accepted for survives a kill of the server: its record and all its activations', async () => {
  const { api } = platform;
  await api.putAction('many', echo);
  await put(api, 'triggers/burst', {});
  const rules = Array.from({ length: 60 }, (_, index) => `burst${index}`);
  for (const rule of rules) await put(api, `rules/${rule}`, { trigger: '/_/burst', action: '/_/many' });
  const { status, activationId } = await api.request('POST', '_/triggers/burst', { x: 1 });
  expect(status).toBe(202);
  ended = true;
  await platform.end('SIGKILL');

  const next = await startPlatform({ dataDir });
  try {
    const lines = linesOf(await next.api.record(activationId));
    expect(lines.map(({ rule }) => rule)).toEqual(rules.map((rule) => `guest/${rule}`));
    const records = await Promise.all(lines.map((line) => next.api.record(line.activationId, 20_000)));
    expect(new Set(records.map((record) => record.activationId)).size).toBe(rules.length);
    const rule = await next.api.request('GET', '_/rules/burst0');
    expect(rule.body).toMatchObject({ status: 'active', trigger: { path: 'guest', name: 'burst' } });
  } finally {
    await next.end('SIGTERM');
  }
});
