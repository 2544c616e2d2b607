// Sequences and compositions on the running platform, and their outcome after a kill.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { annotation, logTexts } from '../support/api-client.js';
import { sandboxCount } from '../support/process-traces.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const flags = ['--memory', '1024', '--stem-cells', 'false'];
const small = { limits: { memory: 128 } };
const conductor = { annotations: { conductor: true }, ...small };

const codes = {
  add: 'function main({ n }) { console.log("n is", n); return { n: n + 1 }; }',
  words: 'function main({ text }) { return text.split(" "); }',
  count: 'function main(words) { return { count: words.length }; }',
  fail: 'function main() { throw new Error("on purpose"); }',
  nap: `async function main({ ms }) {
    console.log('attempt of', process.env.__OW_ACTIVATION_ID);
    await new Promise((done) => setTimeout(done, ms));
    return { ms };
  }`,
  conduct: `function main({ left = 2, ...rest }) {
    return left === 0 ? rest : { action: 'add', params: rest, state: { left: left - 1 } };
  }`,
  conductNap:
    'function main(args) { return args.done ? args : { action: "naps", params: args, state: { done: true } }; }',
};

let dataDir: string;
let platform: RunningPlatform;

beforeAll(() => {
  dataDir = newDataDir();
});
afterEach(() => platform.end('SIGTERM'));
afterAll(() => removeDataDir(dataDir));

async function start(): Promise<ApiClient> {
  platform = await startPlatform({ dataDir, flags });
  return platform.api;
}

async function putSequence(api: ApiClient, name: string, components: string[]): Promise<void> {
  const body = { exec: { kind: 'sequence', components: components.map((one) => `/_/${one}`) } };
  const answer = await api.request('PUT', `_/actions/${name}?overwrite=true`, body);
  if (answer.status !== 200) throw new Error(`PUT of ${name} was answered ${answer.status}`);
}

async function countOf(api: ApiClient, name: string): Promise<number> {
  const { body } = await api.request<{ activations: number }>('GET', `_/activations?count=true&name=${name}`);
  return body.activations;
}

const componentsOf = (api: ApiClient, { logs }: ApiActivation): Promise<ApiActivation[]> =>
  Promise.all(logs.map((id) => api.record(id)));

test('sequences and compositions run on real actions', async () => {
  const api = await start();
  for (const name of ['add', 'words', 'count', 'fail'] as const) await api.putAction(name, codes[name], small);
  await api.putAction('conduct', codes.conduct, conductor);
  await putSequence(api, 'twice', ['add', 'add']);
  await putSequence(api, 'around', ['twice', 'conduct']);

  const { status, record } = await api.run('twice', { n: 1 });
  expect({ status, result: record.response.result }).toEqual({ status: 200, result: { n: 3 } });
  const components = await componentsOf(api, record);
  expect(components.map(({ cause }) => cause)).toEqual([record.activationId, record.activationId]);
  expect(components.map((one) => annotation(one, 'causedBy'))).toEqual(['sequence', 'sequence']);
  expect(components.flatMap(logTexts)).toEqual(['n is 1', 'n is 2']);
  expect(record.duration).toBe(components.reduce((sum, { duration }) => sum + (duration ?? 0), 0));
  expect(annotation(record, 'limits')).toMatchObject({ memory: 128 });

  const around = await api.run('around', { n: 1 });
  expect(around.record.response.result).toEqual({ n: 5 });
  const [, composition] = await componentsOf(api, around.record);
  expect(composition).toMatchObject({ name: 'conduct', cause: around.record.activationId });
  expect(composition?.logs).toHaveLength(5);

  await putSequence(api, 'counted', ['words', 'count']);
  expect((await api.invokeForResult('counted', { text: 'three small words' })).body).toEqual({ count: 3 });
  await putSequence(api, 'failing', ['add', 'fail', 'add']);
  const failing = await api.run('failing', { n: 1 });
  expect(failing.status).toBe(502);
  expect(failing.record.response.status).toBe('action developer error');
  expect(failing.record.logs).toHaveLength(2);
});

test('killed in the middle: each has one record, and no component is run for it afterwards', async () => {
  const api = await start();
  await api.putAction('nap', codes.nap, small);
  await api.putAction('conductNap', codes.conductNap, conductor);
  await putSequence(api, 'naps', ['nap', 'nap', 'nap']);
  const ended = await api.run('naps', { ms: 1 });
  const started = [
    await api.submit('naps', { ms: 20_000 }),
    await api.submit('naps', { ms: 20_000 }),
    await api.submit('conductNap', { ms: 20_000 }),
  ];
  // A caller that waits until the platform is killed: it has no activation id.
  const lost = api.invoke('naps', { ms: 20_000 }).then(
    () => 'answered',
    () => 'cut off',
  );
  const late = await api.invoke('naps', { ms: 20_000 }, 'blocking=true&timeout=500');
  expect(late.status).toBe(202);
  // Five naps and the conductor run.
  await until('they run', () => sandboxCount(platform) >= 6);
  await new Promise((done) => setTimeout(done, 300));
  await platform.end('SIGKILL');
  expect(await lost).toBe('cut off');

  const again = await start();
  for (const id of [...started, late.body.activationId]) {
    const record = await again.record(id, 20_000);
    expect(record.response).toMatchObject({
      status: 'whisk internal error',
      result: { error: 'The controller stopped while the sequence ran.' },
    });
  }
  expect((await again.record(ended.record.activationId)).logs).toEqual(ended.record.logs);
  // Two submitted sequences, two blocking ones, one within the composition, and the one that had ended.
  await until('all are recorded', async () => (await countOf(again, 'naps')) === 6, 20_000);
  expect(await countOf(again, 'conductNap')).toBe(2);
  const naps = await again.request<ApiActivation[]>('GET', '_/activations?name=nap&docs=true&limit=200');
  // One nap of each interrupted sequence, and the three of the one that had ended.
  expect(naps.body).toHaveLength(5 + 3);
});
