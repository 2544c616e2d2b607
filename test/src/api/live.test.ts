// Streams of what other routes answer, read as a browser reads them.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { gpuTable } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, basic, bob, errorOf, operator, startApi } from './harness.js';
import type { Account, Api } from './harness.js';

/** An open stream. */
interface Live {
  /** The next event that is no sign of life. */
  next(): Promise<[event: string, data: JsonObject]>;
  /** Whether the server has ended the stream, once all events are read. */
  isDone(): Promise<boolean>;
  stop(): void;
}

/** The holder of the operator's key, which is of no namespace. */
const holder: Account = { subject: 'holder', namespace: '', uuid: 'holder-uuid', key: 'h'.repeat(64) };
let api: Api;
const opened: Live[] = [];
beforeAll(async () => {
  api = await startApi({ config: { operatorKey: `${holder.uuid}:${holder.key}`, operators: [operator.subject] } });
});
afterEach(async () => {
  for (const live of opened.splice(0)) live.stop();
  await api.state.deleteRow(gpuTable, 'invoker0');
});
afterAll(() => api.close());

async function open(as: Account, ...of: string[]): Promise<Live> {
  const stopping = new AbortController();
  const query = new URLSearchParams(of.map((path): [string, string] => ['of', path]));
  const answer = await fetch(`${api.url}/api/v1/live?${query}`, {
    headers: { authorization: basic(as), accept: 'text/event-stream' },
    signal: stopping.signal,
  });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const event = async (): Promise<string | undefined> => {
    while (!text.includes('\n\n')) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
    const [first = ''] = text.split('\n\n', 1);
    text = text.slice(first.length + 2);
    return first;
  };
  const live: Live = {
    async next() {
      const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec((await event()) ?? '') ?? [];
      return name === 'beat' ? live.next() : [name, JSON.parse(data) as JsonObject];
    },
    isDone: async () => (await event()) === undefined,
    stop: () => stopping.abort(),
  };
  opened.push(live);
  return live;
}

const told = (uuids: string[]): Promise<void> => setNode(api.state, nodeRow(uuids.map((uuid) => a100(uuid))));
const uuidsOf = (value: unknown): unknown => (value as { uuid: string }[]).map(({ uuid }) => uuid);

test('an answer comes whole at first, then what has changed of it', async () => {
  await told(['GPU-0', 'GPU-1', 'GPU-2']);
  const live = await open(alice, 'gpu/devices', 'namespaces/_/actions?limit=5');
  const [event, { of, value, at }] = await live.next();
  expect([event, of, uuidsOf(value)]).toEqual(['value', 'gpu/devices', ['GPU-0', 'GPU-1', 'GPU-2']]);
  expect(Math.abs(Date.now() - Number(at))).toBeLessThan(60_000);
  expect(await live.next()).toMatchObject(['value', { of: 'namespaces/_/actions?limit=5', value: [] }]);
  await setNode(api.state, nodeRow([a100('GPU-0'), a100('GPU-1', { memoryMiB: 7 }), a100('GPU-3')]));
  const [later, { set, gone }] = await live.next();
  expect([later, uuidsOf(set), gone]).toEqual(['changes', ['GPU-1', 'GPU-3'], ['GPU-2']]);
});

test('a path with another status is a problem, and its value comes when there is one', async () => {
  const live = await open(alice, 'namespaces/_/actions/later');
  expect(await live.next()).toMatchObject([
    'problem',
    { status: 404, error: 'The requested resource does not exist.' },
  ]);
  const body = { exec: { kind: 'nodejs:default', code: 'function main() {}' } };
  await api.request('PUT', '/api/v1/namespaces/_/actions/later', { body });
  expect(await live.next()).toMatchObject(['value', { of: 'namespaces/_/actions/later', value: { name: 'later' } }]);
});

test('an action comes without its code', async () => {
  const body = { exec: { kind: 'nodejs:default', code: 'function main() {}' } };
  await api.request('PUT', '/api/v1/namespaces/_/actions/plain', { body });
  const live = await open(alice, 'namespaces/_/actions/plain');
  const [, { value }] = await live.next();
  expect(value).toMatchObject({ name: 'plain', exec: { binary: false } });
  expect(value).not.toHaveProperty('exec.code');
});

test('callers follow what they may read, and each sees what is theirs', async () => {
  await told(['GPU-0']);
  const [[, first], [, second]] = (await Promise.all(
    [alice, operator].map(async (as) => (await open(as, 'gpu/devices')).next()),
  )) as [[string, { value: unknown }], [string, { value: unknown }]];
  expect([first.value, second.value]).toMatchObject([
    [{ health: { state: 'healthy' } }],
    [{ health: { state: 'healthy', reasons: [] } }],
  ]);
});

test.each([
  ['no path', '', alice, 400],
  ['too many paths', Array.from({ length: 17 }, () => 'of=gpu/devices').join('&'), alice, 400],
  ['a path that is not there', 'of=nothing', alice, 404],
  ['a path that leads elsewhere', 'of=../../metrics', alice, 404],
  ['a stream of streams', 'of=live', operator, 404],
  ['a list of documents', 'of=namespaces/_/activations%3Fdocs=true', alice, 400],
  ['an action with its code', 'of=namespaces/_/actions/a%3Fcode=true', alice, 400],
  ["an operator's path", 'of=gpu/nodes', alice, 403],
  ['no key', 'of=gpu/devices', null, 401],
])('%s is refused', async (_, query, as, status) => {
  const reply = await api.request('GET', `/api/v1/live?${query}`, { as });
  expect(reply.status).toBe(status);
  expect(errorOf(reply)).not.toBe('');
});

test("the operator's key follows what operators see, and nothing of a namespace", async () => {
  const live = await open(holder, 'gpu/devices', 'namespaces/_/actions');
  expect(await live.next()).toMatchObject(['value', { of: 'gpu/devices' }]);
  expect(await live.next()).toMatchObject(['problem', { of: 'namespaces/_/actions', status: 403 }]);
});

test('a namespace has a bound, and streams that are closed do not count', async () => {
  for (let count = 0; count < 20; count += 1) await open(bob, 'gpu/devices');
  const further = (): Promise<number> =>
    fetch(`${api.url}/api/v1/live?of=gpu/devices`, { headers: { authorization: basic(bob) } }).then(async (answer) => {
      await answer.body?.cancel();
      return answer.status;
    });
  expect(await further()).toBe(429);
  opened.pop()?.stop();
  // The server sees the end of a connection a moment later.
  let status = await further();
  for (let look = 0; status === 429 && look < 100; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    status = await further();
  }
  expect(status).toBe(200);
});

test('the end of the controller is told', async () => {
  const live = await open(alice, 'gpu/devices');
  await live.next();
  api.controller.liveStreams.close();
  expect(await live.next()).toEqual(['end', { status: 503, error: 'The controller stops.' }]);
  expect(await live.isDone()).toBe(true);
});

test("the operator's key is of no namespace", async () => {
  expect((await api.request('GET', '/api/v1/viewer', { as: holder })).json).toEqual({ isOperator: true });
});
