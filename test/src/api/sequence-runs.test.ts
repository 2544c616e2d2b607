// Invoking sequences: the cases of OpenWhisk's WskSequenceTests, on an invoker that answers as told.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { actionPath, alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';
import { runMs, simulatedActions } from './simulated-actions.js';
import type { SimulatedCode } from './simulated-actions.js';

interface Record {
  activationId: string;
  cause?: string;
  duration: number;
  start: number;
  end: number;
  logs: string[];
  name: string;
  namespace: string;
  version: string;
  response: JsonObject;
  annotations: { key: string; value: JsonValue }[];
}

let api: Api;
let id: (serial: number) => string;

const code: { [name: string]: SimulatedCode } = {
  echo: (payload) => payload,
  add: (payload) => ({ n: Number((payload as JsonObject).n) + 1 }),
  list: () => [1, 2, 3],
  sum: (payload) => ({ sum: (payload as number[]).reduce((one, other) => one + other, 0) }),
  fail: () => ({ error: 'on purpose' }),
  hang: () => 'timeout',
  broken: () => {
    throw new Error('no invoker');
  },
};

beforeAll(async () => {
  api = await startApi({ limits: { maxConcurrency: 10 } });
  for (const name of Object.keys(code)) await put(name, hello);
  await put('echo', { limits: { memory: 512 } });
});
afterAll(() => api.close());
beforeEach(() => {
  api.invocations.length = 0;
  const actions = simulatedActions(code);
  ({ id } = actions);
  api.onInvoke(actions.answer);
});

async function put(name: string, body: object, as: Account = alice): Promise<void> {
  const reply = await api.request('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, { body, as });
  if (reply.status !== 200) throw new Error(`PUT ${name}: ${reply.text}`);
}

async function putSequence(name: string, components: string[], more: object = {}): Promise<void> {
  await put(name, { exec: { kind: 'sequence', components: components.map((one) => `/_/${one}`) }, ...more });
}

function invoke(name: string, body: unknown = {}, query = 'blocking=true', as: Account = alice): Promise<Reply> {
  return api.request('POST', `/api/v1/namespaces/alice/actions/${name}?${query}`, { body, as });
}

async function stored(activationId: string): Promise<Record> {
  for (let tries = 0; ; tries++) {
    const reply = await api.request('GET', `/api/v1/namespaces/_/activations/${activationId}`);
    if (reply.status === 200) return reply.json as Record;
    if (tries > 200) throw new Error(`no record of ${activationId}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

const annotation = ({ annotations }: Record, key: string): JsonValue | undefined =>
  annotations.find((one) => one.key === key)?.value;

test('each component gets the result of the one before; the record tells of all', async () => {
  await putSequence('s', ['add', 'echo', 'add'], { limits: { timeout: 5000, logs: 1 } });
  const reply = await invoke('s', { n: 1, error: 'does not matter here' });
  expect(reply.status).toBe(200);
  const record = reply.json as Record;
  expect(reply.headers['x-openwhisk-activation-id']).toBe(record.activationId);
  expect(api.invocations.map(({ payload }) => payload)).toEqual([
    { n: 1, error: 'does not matter here' },
    { n: 2 },
    { n: 2 },
  ]);
  expect(record).toMatchObject({
    namespace: 'alice',
    name: 's',
    version: '0.0.1',
    subject: 'alice-subject',
    response: { status: 'success', success: true, result: { n: 3 } },
    duration: 3 * runMs,
    logs: [id(1), id(2), id(3)],
  });
  expect(record.cause).toBeUndefined();
  expect(record.annotations).toEqual([
    { key: 'topmost', value: true },
    { key: 'path', value: 'alice/s' },
    { key: 'kind', value: 'sequence' },
    { key: 'waitTime', value: expect.any(Number) },
    { key: 'limits', value: { timeout: 5000, memory: 512, logs: 1, concurrency: 1 } },
  ]);
  for (const { cause, blocking, waitMs } of api.invocations) {
    expect({ cause, blocking, waitMs }).toEqual({ cause: record.activationId, blocking: true, waitMs: 120_000 });
  }
  expect(await stored(record.activationId)).toEqual(record);
});

test('result=true gives the result alone; without waiting there is an id and later a record', async () => {
  await putSequence('s', ['add', 'add']);
  expect((await invoke('s', { n: 1 }, 'blocking=true&result=true')).json).toEqual({ n: 3 });
  const accepted = await invoke('s', { n: 5 }, 'blocking=false');
  expect(accepted.status).toBe(202);
  const { activationId } = accepted.json as { activationId: string };
  expect(accepted.headers['x-openwhisk-activation-id']).toBe(activationId);
  expect(await stored(activationId)).toMatchObject({ response: { status: 'success', result: { n: 7 } } });
});

test('arrays pass from one component to the next, and out', async () => {
  await putSequence('s', ['list', 'sum']);
  expect((await invoke('s', {}, 'blocking=true&result=true')).json).toEqual({ sum: 6 });
  await putSequence('t', ['sum', 'list']);
  api.onInvoke(simulatedActions({ ...code, sum: () => ({}) }).answer);
  expect((await invoke('t')).json).toEqual([1, 2, 3]);
});

test("the caller's arguments go to the first component only, a sequence's own parameters to none", async () => {
  await put('withParameter', { ...hello, parameters: [{ key: 'fixed', value: 1 }] });
  api.onInvoke(simulatedActions({ ...code, withParameter: (payload) => payload }).answer);
  await putSequence('s', ['withParameter', 'echo']);
  const { response } = (await invoke('s', { given: 2 })).json as Record;
  expect(response.result).toEqual({ fixed: 1, given: 2 });
});

test('an error ends it, with the status of the component', async () => {
  await putSequence('s', ['echo', 'fail', 'echo']);
  const reply = await invoke('s');
  expect(reply.status).toBe(502);
  expect(reply.json).toMatchObject({
    response: { status: 'application error', success: false, result: { error: 'on purpose' } },
    logs: [id(1), id(2)],
    duration: 2 * runMs,
  });
  expect(api.invocations).toHaveLength(2);
});

test('a component that is gone', async () => {
  await put('gone', hello);
  await putSequence('s', ['echo', 'gone']);
  await api.request('DELETE', actionPath('gone'));
  const reply = await invoke('s');
  expect(reply.status).toBe(502);
  expect(reply.json).toMatchObject({
    response: { status: 'application error', result: { error: 'Sequence component does not exist.' } },
    logs: [id(1)],
  });
});

test('a component without a result in time, and one that cannot be invoked', async () => {
  await putSequence('s', ['echo', 'hang', 'echo']);
  const late = await invoke('s');
  expect(late.status).toBe(500);
  expect(late.json).toMatchObject({
    response: {
      status: 'whisk internal error',
      result: { error: `Timeout reached when retrieving activation ${id(2)} for sequence component.` },
    },
    logs: [id(1), id(2)],
  });
  await putSequence('s', ['broken', 'echo']);
  const failed = await invoke('s');
  expect(failed.status).toBe(500);
  expect(failed.json).toMatchObject({
    response: { status: 'whisk internal error', result: { error: 'Sequence failed.' } },
    logs: [],
  });
});

test('a sequence within a sequence is one component with a record of its own', async () => {
  await putSequence('inner', ['add', 'echo']);
  await putSequence('outer', ['add', 'inner', 'add']);
  const outer = (await invoke('outer', { n: 1 })).json as Record;
  expect(outer).toMatchObject({ response: { result: { n: 4 } }, duration: 4 * runMs });
  expect(outer.logs).toEqual([id(1), expect.any(String), id(4)]);
  const inner = await stored(outer.logs[1] ?? '');
  expect(inner).toMatchObject({
    name: 'inner',
    cause: outer.activationId,
    logs: [id(2), id(3)],
    duration: 2 * runMs,
    response: { result: { n: 3 } },
  });
  expect([annotation(inner, 'topmost'), annotation(inner, 'causedBy')]).toEqual([false, 'sequence']);
  expect(annotation(outer, 'causedBy')).toBeUndefined();
  expect(api.invocations.map(({ cause }) => cause)).toEqual([
    outer.activationId,
    inner.activationId,
    inner.activationId,
    outer.activationId,
  ]);
});

test('what grew beyond the limit after it was stored ends there', async () => {
  await putSequence('x', ['echo']);
  await putSequence('s', ['echo', 'x', 'echo']);
  await putSequence(
    'x',
    Array.from({ length: 50 }, () => 'echo'),
  );
  const reply = await invoke('s', { n: 1 });
  expect(reply.status).toBe(502);
  const record = reply.json as Record;
  const tooLong = { status: 'application error', result: { error: 'Too many actions in the sequence.' } };
  expect(record).toMatchObject({ response: tooLong });
  expect(record.logs).toHaveLength(2);
  const inner = await stored(record.logs[1] ?? '');
  expect(inner).toMatchObject({ response: tooLong, cause: record.activationId });
  expect(inner.logs).toHaveLength(49);
});

test('stored sequences that are cyclic all the same end', async () => {
  await putSequence('one', ['echo']);
  await putSequence('other', ['one']);
  const document = await api.store.get('whisks', 'alice/one');
  await api.store.put('whisks', { ...document, exec: { kind: 'sequence', components: ['/alice/other'] } });
  api.controller.actions.drop('alice', 'one');
  const { response } = (await invoke('one')).json as Record;
  expect(response).toMatchObject({
    status: 'application error',
    result: { error: 'Too many actions in the sequence.' },
  });
});

test('the caller needs the right to each component', async () => {
  await api.request('PUT', '/api/v1/namespaces/_/packages/shared', { body: { publish: true } });
  await put('shared/a', hello);
  await putSequence('shared/s', ['echo', 'shared/a', 'add']);
  const refused = await invoke('shared/s', {}, 'blocking=true', bob);
  expect([refused.status, errorOf(refused)]).toEqual([
    403,
    "The supplied authentication is not authorized to access 'alice/add, alice/echo'.",
  ]);
  expect(api.invocations).toEqual([]);
});

test('through a binding, the record names it', async () => {
  const body = { binding: { namespace: 'alice', name: 'lib' } };
  await api.request('PUT', '/api/v1/namespaces/_/packages/lib', { body: { publish: true } });
  await api.request('PUT', '/api/v1/namespaces/_/packages/bound', { body });
  await put('lib/echo', hello);
  await putSequence('lib/s', ['bound/echo']);
  const record = (await invoke('bound/s')).json as Record;
  expect([annotation(record, 'path'), annotation(record, 'binding')]).toEqual(['alice/lib/s', 'alice/bound']);
  expect(api.invocations[0]).toMatchObject({
    binding: 'alice/bound',
    action: { namespace: 'alice/lib', name: 'echo' },
  });
});
