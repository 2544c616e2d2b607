// Invoking conductor actions: the cases of OpenWhisk's WskConductorTests, on an invoker with canned answers.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { ComposingApi, annotation } from './composing-api.js';
import type { ApiRecord } from './composing-api.js';
import { bob, errorOf, hello } from './harness.js';
import { runMs } from './simulated-actions.js';
import type { SimulatedCode } from './simulated-actions.js';

let composing: ComposingApi;
let id: (serial: number) => string;

/**
 * OpenWhisk's test conductor: returns the `action`, `state` and `params` it is given, and keeps the rest as parameters.
 */
function conduct(payload: JsonObject | JsonValue[]): JsonValue {
  if (Array.isArray(payload) || payload.error !== undefined) return payload;
  const { action, state, params, ...rest } = payload;
  const over = isJsonObject(params) ? params : {};
  return {
    ...(action !== undefined && { action }),
    params: { ...rest, ...over },
    ...(state !== undefined && { state }),
  };
}

const code: Record<string, SimulatedCode> = {
  echo: (payload) => payload,
  conductor: conduct,
  other: conduct,
  step: (payload): JsonValue => {
    const { n, ...rest } = payload as JsonObject;
    return n === undefined ? { error: 'missing parameter' } : { ...rest, n: Number(n) + 1 };
  },
  list: () => [1, 2],
  hang: () => 'timeout',
  broken: () => {
    throw new Error('no invoker');
  },
};
const conductorAnnotation = { annotations: [{ key: 'conductor', value: true }] };

beforeAll(async () => {
  composing = await ComposingApi.start(code, { limits: { maxSequenceLength: 5 } });
  for (const name of ['echo', 'conductor', 'other']) await composing.put(name, conductorAnnotation);
  await composing.put('step', { limits: { memory: 257 } });
});
afterAll(() => composing.api.close());
beforeEach(() => {
  id = composing.reset();
});

const error = (record: ApiRecord): [JsonValue | undefined, JsonValue | undefined] => {
  const { status, result } = record.response;
  return [status, isJsonObject(result) ? result.error : undefined];
};

test('without a continuation, the result is what the conductor gave', async () => {
  const plain = await composing.run('echo', { payload: 'x', state: 'y' });
  expect(plain).toMatchObject({
    name: 'echo',
    response: { status: 'success', result: { payload: 'x', state: 'y' } },
    logs: [id(1)],
    duration: runMs,
  });
  expect(plain.annotations).toEqual([
    { key: 'topmost', value: true },
    { key: 'path', value: 'alice/echo' },
    { key: 'kind', value: 'sequence' },
    { key: 'conductor', value: true },
    { key: 'waitTime', value: expect.any(Number) },
    { key: 'limits', value: { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 } },
  ]);
  expect(composing.api.invocations).toMatchObject([{ cause: plain.activationId, blocking: true, waitMs: 120_000 }]);
  expect(await composing.stored(plain.activationId)).toEqual(plain);

  expect(error(await composing.run('echo', { error: 'e' }))).toEqual(['application error', 'e']);
  const wrapped = await composing.run('echo', { params: { payload: 'x' }, result: 'y', state: 'z' });
  expect(wrapped.response.result).toEqual({ payload: 'x' });
  expect((await composing.run('echo', { params: 3 })).response.result).toEqual({ value: 3 });
});

test('a component runs between two runs of the conductor', async () => {
  const one = await composing.run('conductor', { action: 'step', n: 1 });
  expect(one).toMatchObject({
    response: { status: 'success', result: { n: 2 } },
    logs: [id(1), id(2), id(3)],
    duration: 3 * runMs,
  });
  expect(annotation(one, 'limits')).toMatchObject({ memory: 257 });
  expect(composing.api.invocations.map(({ action, cause }) => [action.name, cause])).toEqual(
    ['conductor', 'step', 'conductor'].map((name) => [name, one.activationId]),
  );
  expect(error(await composing.run('conductor', { action: 'step' }))).toEqual([
    'application error',
    'missing parameter',
  ]);
});

test('state comes back to the conductor, over the result', async () => {
  const kept = await composing.run('conductor', { action: 'step', n: 1, state: { witness: 42 } });
  expect(kept.response.result).toEqual({ n: 2, witness: 42 });
  const twice = await composing.run('conductor', { action: 'step', n: 1, state: { action: 'step' } });
  expect([twice.response.result, twice.logs.length]).toEqual([{ n: 3 }, 5]);
  const boxed = await composing.run('conductor', { action: 'step', n: 1, state: 7 });
  expect(composing.api.invocations.at(-1)?.payload).toEqual({ n: 2, state: 7 });
  expect(boxed.response.status).toBe('success');
});

test('what cannot be invoked is told to the conductor', async () => {
  const told = async (action: JsonValue): Promise<JsonValue | undefined> => {
    const record = await composing.run('conductor', { action });
    expect(record.logs).toHaveLength(2);
    const [status, text] = error(record);
    expect(status).toBe('application error');
    return text;
  };
  const unreadable = (value: string): string =>
    `Failed to parse action name from json value ${value} during composition.`;
  expect(await told('invalid#Action')).toBe(unreadable('"invalid#Action"'));
  expect(await told({ a: 1 })).toBe(unreadable('{"a":1}'));
  expect(await told('/single')).toBe(unreadable('"/single"'));
  expect(await told('a/b/c/d')).toBe(unreadable('"a/b/c/d"'));
  const missing = (name: string): string => `Failed to resolve action with name '${name}' during composition.`;
  expect(await told('missing')).toBe(missing('alice/missing'));
  expect(await told('/_/missing')).toBe(missing('alice/missing'));
  expect(await told('pkg/missing')).toBe(missing('alice/pkg/missing'));
  expect(await told('/bob/secret')).toBe(
    "Failed entitlement check for action with name 'bob/secret' during composition.",
  );
});

test("names: one's own, in a package, in full", async () => {
  await composing.putPackage('tools', {});
  await composing.put('tools/step', hello);
  for (const action of ['step', 'tools/step', '/_/step', '/alice/tools/step', 'alice/tools/step']) {
    expect((await composing.run('conductor', { action, n: 1 })).response.result).toEqual({ n: 2 });
  }
});

test('a composition within a composition is one entry of its own record', async () => {
  const outer = await composing.run('conductor', { action: 'other', params: { action: 'step' }, n: 1 });
  expect(outer).toMatchObject({ response: { status: 'success', result: { n: 2 } }, duration: 5 * runMs });
  expect(outer.logs).toEqual([id(1), expect.any(String), id(5)]);
  const inner = await composing.stored(outer.logs[1]);
  expect(inner).toMatchObject({
    cause: outer.activationId,
    logs: [id(2), id(3), id(4)],
    response: { result: { n: 2 } },
  });
  expect(['topmost', 'causedBy', 'conductor'].map((key) => annotation(inner, key))).toEqual([false, 'sequence', true]);
});

test('sequences in compositions, and compositions in sequences', async () => {
  await composing.putSequence('two', ['step', 'step']);
  const composition = await composing.run('conductor', { action: 'two', n: 1 });
  expect(composition).toMatchObject({ response: { result: { n: 3 } }, duration: 4 * runMs });
  expect(composition.logs).toHaveLength(3);
  expect(await composing.stored(composition.logs[1])).toMatchObject({ cause: composition.activationId });

  await composing.putSequence('around', ['step', 'conductor']);
  const sequence = await composing.run('around', { n: 1, action: 'step' });
  expect(sequence).toMatchObject({ response: { result: { n: 3 } } });
  const nested = await composing.stored(sequence.logs[1]);
  expect(nested).toMatchObject({ cause: sequence.activationId });
  expect(nested.logs).toHaveLength(3);
});

test('the annotation means nothing on a sequence', async () => {
  await composing.putSequence('marked', ['step'], conductorAnnotation);
  const record = await composing.run('marked', { n: 1, action: 'step' });
  expect(record).toMatchObject({ response: { result: { n: 2, action: 'step' } }, logs: [id(1)] });
  expect(annotation(record, 'conductor')).toBeUndefined();
});

test('a conductor that never ends is told once it had its components, then ended', async () => {
  composing.reset({ conductor: () => ({ action: 'step', params: { n: 1 } }) });
  const record = await composing.run('conductor');
  expect(error(record)).toEqual(['application error', 'Too many actions in the composition.']);
  // 5 components, and 2 * 5 + 1 runs of the conductor.
  expect(record.logs).toHaveLength(16);
  composing.reset({
    conductor: (payload): JsonValue =>
      isJsonObject(payload) && payload.error !== undefined
        ? { told: payload.error }
        : { action: 'step', params: { n: 1 } },
  });
  const told = await composing.run('conductor');
  expect(told.response.result).toEqual({ told: 'Too many actions in the composition.' });
  expect(told.logs).toHaveLength(12);
});

test('compositions and sequences that invoke each other without end are ended', async () => {
  await composing.putSequence('loop', ['step', 'conductor']);
  composing.reset({ conductor: () => ({ action: 'loop', params: { n: 1 } }) });
  const reply = await composing.invoke('conductor');
  expect(reply.status).toBe(502);
});

test('arrays are results as well', async () => {
  expect((await composing.invoke('conductor', { action: 'list' })).json).toEqual([1, 2]);
  const boxed = await composing.run('conductor', { action: 'list', state: { kept: 1 } });
  expect(boxed.response.result).toEqual({ value: [1, 2], kept: 1 });
});

test('a component without a result in time, and one that cannot be invoked', async () => {
  const late = await composing.run('conductor', { action: 'hang' });
  expect(error(late)).toEqual([
    'whisk internal error',
    `Timeout reached when retrieving activation ${id(2)} during composition.`,
  ]);
  expect(late.logs).toEqual([id(1), id(2)]);
  const failed = await composing.invoke('conductor', { action: 'broken' });
  expect(failed.status).toBe(500);
  expect(error(failed.json as ApiRecord)).toEqual(['whisk internal error', 'Activation failure during composition.']);
});

test('through a binding, the record names it', async () => {
  await composing.putPackage('package1', { publish: true });
  await composing.putPackage('package2', { binding: { namespace: 'alice', name: 'package1' } });
  await composing.put('package1/echo', { ...hello, ...conductorAnnotation });
  const record = await composing.run('package2/echo', { payload: 'x' });
  expect(annotation(record, 'binding')).toBe('alice/package2');
  expect(annotation(record, 'path')).toBe('alice/package1/echo');
  expect(composing.api.invocations).toMatchObject([{ binding: 'alice/package2' }]);
});

test('a caller who may not use a component; final parameters', async () => {
  await composing.putPackage('shared', { publish: true });
  await composing.put('shared/conductor', { ...hello, ...conductorAnnotation });
  const reply = await composing.invoke('shared/conductor', { action: '/alice/step' }, 'blocking=true', bob);
  expect(error(reply.json as ApiRecord)[1]).toBe(
    "Failed entitlement check for action with name 'alice/step' during composition.",
  );
  await composing.put('fixed', {
    ...hello,
    parameters: [{ key: 'a', value: 1 }],
    annotations: [...conductorAnnotation.annotations, { key: 'final', value: true }],
  });
  const refused = await composing.invoke('fixed', { a: 2 });
  expect([refused.status, errorOf(refused)]).toEqual([
    400,
    'Request defines parameters that are not allowed (e.g., reserved properties).',
  ]);
});
