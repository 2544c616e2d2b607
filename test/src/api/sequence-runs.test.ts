// Invoking sequences: the cases of OpenWhisk's WskSequenceTests, on an invoker with canned answers.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { ComposingApi, annotation } from './composing-api.js';
import type { ApiRecord } from './composing-api.js';
import { actionPath, bob, errorOf, hello } from './harness.js';
import type { Api } from './harness.js';
import { runMs } from './simulated-actions.js';
import type { SimulatedCode } from './simulated-actions.js';

let composing: ComposingApi;
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
  composing = await ComposingApi.start(code);
  ({ api } = composing);
  await composing.put('echo', { limits: { memory: 512 } });
});
afterAll(() => api.close());
beforeEach(() => {
  id = composing.reset();
});

test('each component gets the result of the one before; the record tells of all', async () => {
  await composing.putSequence('s', ['add', 'echo', 'add'], { limits: { timeout: 5000, logs: 1 } });
  const reply = await composing.invoke('s', { n: 1, error: 'does not matter here' });
  expect(reply.status).toBe(200);
  const record = reply.json as ApiRecord;
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
  expect(await composing.stored(record.activationId)).toEqual(record);
});

test('result=true gives the result alone; without waiting there is an id and later a record', async () => {
  await composing.putSequence('s', ['add', 'add']);
  expect((await composing.invoke('s', { n: 1 }, 'blocking=true&result=true')).json).toEqual({ n: 3 });
  const accepted = await composing.invoke('s', { n: 5 }, 'blocking=false');
  expect(accepted.status).toBe(202);
  const { activationId } = accepted.json as { activationId: string };
  expect(accepted.headers['x-openwhisk-activation-id']).toBe(activationId);
  expect(await composing.stored(activationId)).toMatchObject({ response: { status: 'success', result: { n: 7 } } });
});

test('arrays pass from one component to the next, and out', async () => {
  await composing.putSequence('s', ['list', 'sum']);
  expect((await composing.invoke('s', {}, 'blocking=true&result=true')).json).toEqual({ sum: 6 });
  await composing.putSequence('t', ['sum', 'list']);
  composing.reset({ sum: () => ({}) });
  expect((await composing.invoke('t')).json).toEqual([1, 2, 3]);
});

test("the caller's arguments go to the first component only, a sequence's own parameters to none", async () => {
  await composing.put('withParameter', { ...hello, parameters: [{ key: 'fixed', value: 1 }] });
  composing.reset({ withParameter: (payload) => payload });
  await composing.putSequence('s', ['withParameter', 'echo']);
  const { response } = await composing.run('s', { given: 2 });
  expect(response.result).toEqual({ fixed: 1, given: 2 });
});

test('an error ends it, with the status of the component', async () => {
  await composing.putSequence('s', ['echo', 'fail', 'echo']);
  const reply = await composing.invoke('s');
  expect(reply.status).toBe(502);
  expect(reply.json).toMatchObject({
    response: { status: 'application error', success: false, result: { error: 'on purpose' } },
    logs: [id(1), id(2)],
    duration: 2 * runMs,
  });
  expect(api.invocations).toHaveLength(2);
});

test('a component that is gone', async () => {
  await composing.put('gone', hello);
  await composing.putSequence('s', ['echo', 'gone']);
  await api.request('DELETE', actionPath('gone'));
  const reply = await composing.invoke('s');
  expect(reply.status).toBe(502);
  expect(reply.json).toMatchObject({
    response: { status: 'application error', result: { error: 'Sequence component does not exist.' } },
    logs: [id(1)],
  });
});

test('a component without a result in time, and one that cannot be invoked', async () => {
  await composing.putSequence('s', ['echo', 'hang', 'echo']);
  const late = await composing.invoke('s');
  expect(late.status).toBe(500);
  expect(late.json).toMatchObject({
    response: {
      status: 'whisk internal error',
      result: { error: `Timeout reached when retrieving activation ${id(2)} for sequence component.` },
    },
    logs: [id(1), id(2)],
  });
  await composing.putSequence('s', ['broken', 'echo']);
  const failed = await composing.invoke('s');
  expect(failed.status).toBe(500);
  expect(failed.json).toMatchObject({
    response: { status: 'whisk internal error', result: { error: 'Sequence failed.' } },
    logs: [],
  });
});

test('a sequence within a sequence is one component with a record of its own', async () => {
  await composing.putSequence('inner', ['add', 'echo']);
  await composing.putSequence('outer', ['add', 'inner', 'add']);
  const outer = await composing.run('outer', { n: 1 });
  expect(outer).toMatchObject({ response: { result: { n: 4 } }, duration: 4 * runMs });
  expect(outer.logs).toEqual([id(1), expect.any(String), id(4)]);
  const inner = await composing.stored(outer.logs[1] ?? '');
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
  await composing.putSequence('x', ['echo']);
  await composing.putSequence('s', ['echo', 'x', 'echo']);
  await composing.putSequence(
    'x',
    Array.from({ length: 50 }, () => 'echo'),
  );
  const reply = await composing.invoke('s', { n: 1 });
  expect(reply.status).toBe(502);
  const record = reply.json as ApiRecord;
  const tooLong = { status: 'application error', result: { error: 'Too many actions in the sequence.' } };
  expect(record).toMatchObject({ response: tooLong });
  expect(record.logs).toHaveLength(2);
  const inner = await composing.stored(record.logs[1] ?? '');
  expect(inner).toMatchObject({ response: tooLong, cause: record.activationId });
  expect(inner.logs).toHaveLength(49);
});

test('stored sequences that are cyclic all the same end', async () => {
  await composing.putSequence('one', ['echo']);
  await composing.putSequence('other', ['one']);
  const document = await api.store.get('whisks', 'alice/one');
  await api.store.put('whisks', { ...document, exec: { kind: 'sequence', components: ['/alice/other'] } });
  api.controller.actions.drop('alice', 'one');
  const { response } = await composing.run('one');
  expect(response).toMatchObject({
    status: 'application error',
    result: { error: 'Too many actions in the sequence.' },
  });
});

test('the caller needs the right to each component', async () => {
  await composing.putPackage('shared', { publish: true });
  await composing.put('shared/a', hello);
  await composing.putSequence('shared/s', ['echo', 'shared/a', 'add']);
  const refused = await composing.invoke('shared/s', {}, 'blocking=true', bob);
  expect([refused.status, errorOf(refused)]).toEqual([
    403,
    "The supplied authentication is not authorized to access 'alice/add, alice/echo'.",
  ]);
  await composing.putPackage('closed', { publish: true });
  await composing.put('closed/a', hello);
  await composing.putSequence('shared/s', ['echo', 'shared/a', 'closed/a']);
  await composing.putPackage('closed', { publish: false });
  // For an action in a closed package, the refusal names the package.
  const closed = await composing.invoke('shared/s', {}, 'blocking=true', bob);
  expect([closed.status, errorOf(closed)]).toEqual([
    403,
    "The supplied authentication is not authorized to access 'alice/closed'.",
  ]);
  expect(api.invocations).toEqual([]);
});

test('a component whose package is gone', async () => {
  await composing.putPackage('gone', {});
  await composing.put('gone/a', hello);
  await composing.putSequence('s', ['echo', 'gone/a']);
  await api.request('DELETE', '/api/v1/namespaces/_/packages/gone?force=true');
  const reply = await composing.invoke('s');
  expect([reply.status, errorOf(reply)]).toEqual([404, 'The requested resource does not exist.']);
  expect(api.invocations).toEqual([]);
});

test('through a binding, the record names it', async () => {
  const body = { binding: { namespace: 'alice', name: 'lib' } };
  await composing.putPackage('lib', { publish: true });
  await composing.putPackage('bound', body);
  await composing.put('lib/echo', hello);
  await composing.putSequence('lib/s', ['bound/echo']);
  const record = await composing.run('bound/s');
  expect([annotation(record, 'path'), annotation(record, 'binding')]).toEqual(['alice/lib/s', 'alice/bound']);
  expect(api.invocations[0]).toMatchObject({
    binding: 'alice/bound',
    action: { namespace: 'alice/lib', name: 'echo' },
  });
});
