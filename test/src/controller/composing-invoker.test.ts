// Sequences and compositions when the controller crashes or stops, and at the limits.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { InvokeOutcome } from '@gpuwhisk/controller/invoke/invoke-service';
import { storeLike } from '../simulation/delegates.js';
import { ComposingWorld, action, never, seen } from './composing-world.js';

let world: ComposingWorld;

beforeEach(() => {
  world = new ComposingWorld();
});

afterEach(() => world.close());

const stopped = { statusCode: 3, result: { error: 'The controller stopped while the sequence ran.' } };

test.each(['s', 'conductor'])(
  '%s: what had begun when the power went is recorded as stopped, and not run again',
  async (name) => {
    const id = await world.submit(await world.rise(), name);
    await world.untilHanging();
    world.crash();
    const before = [...world.invoked];
    await world.rise();
    const found = await world.record(id);
    expect(found).toMatchObject({ name, version: '0.0.3', namespace: 'alice', response: stopped, logs: [] });
    expect(found.annotations).toContainEqual({ key: 'topmost', value: true });
    expect(world.invoked).toEqual(before);
    world.crash();
    await world.rise();
    expect(await world.record(id)).toEqual(found);
    expect(await world.records()).toHaveLength(1);
  },
);

test('what was accepted and had not begun is run, once', async () => {
  // No start mark reaches the disk, so the first controller process never starts the sequence.
  world.hangs = Promise.resolve();
  const first = await world.rise({ marks: { mark: () => () => never, startedBefore: () => false } });
  const id = await world.submit(first, 's');
  expect(world.invoked).toEqual([]);
  world.crash();
  await world.rise();
  expect(await world.record(id)).toMatchObject({ response: { statusCode: 0, result: { n: 1 } } });
  expect(world.invoked).toEqual(['a', 'hang', 'a']);
  world.crash();
  await world.rise();
  await new Promise((done) => setTimeout(done, 100));
  expect(world.invoked).toHaveLength(3);
  expect(await world.records()).toHaveLength(1);
});

test('what was recorded and not yet noted as done is left alone', async () => {
  world.hangs = Promise.resolve();
  const first = await world.rise();
  const id = await world.submit(first, 's');
  const found = await world.record(id);
  world.crash();
  await world.rise();
  await new Promise((done) => setTimeout(done, 100));
  expect(await world.record(id)).toEqual(found);
  expect(world.invoked).toHaveLength(3);
});

test('a nested one that had begun has a record too, with its cause', async () => {
  const composing = await world.rise();
  const id = await world.submit(composing, 'outer');
  await world.untilHanging();
  // The 202 of a later submission comes after all earlier log entries are on the disk.
  await world.submit(composing, 'inner');
  world.crash();
  await world.rise();
  expect(await world.record(id)).toMatchObject({ response: stopped });
  const nested = await seen('the nested record', async () => (await world.records()).find(({ cause }) => cause === id));
  expect(nested).toMatchObject({ name: 'inner', response: stopped });
  expect(nested.annotations).toContainEqual({ key: 'topmost', value: false });
});

test('what was changed or deleted before it could begin is recorded so', async () => {
  const first = await world.rise({ marks: { mark: () => () => never, startedBefore: () => false } });
  const changed = await world.submit(first, 's');
  const deleted = await world.submit(first, 'outer');
  world.crash();
  world.actions.set('s', { ...action('s', ['a']), revision: '2-b' });
  world.actions.delete('outer');
  await world.rise();
  const error = async (id: string): Promise<unknown> => (await world.record(id)).response;
  expect(await error(changed)).toEqual({
    statusCode: 3,
    result: { error: 'Action version is not compatible and cannot be invoked.' },
  });
  expect(await error(deleted)).toEqual({
    statusCode: 3,
    result: { error: 'Action could not be found or may have been deleted.' },
  });
  expect(world.invoked).toEqual([]);
});

test('a caller who waits too short gets an id, and the sequence goes on', async () => {
  let goOn = (): void => undefined;
  world.hangs = new Promise((resolve) => {
    goOn = resolve;
  });
  const composing = await world.rise();
  const outcome = await composing.invoke(world.request('s', { blocking: true, waitMs: 20 }));
  if (outcome.type !== 'accepted') throw new Error('it did not hang');
  expect(await world.recorded(outcome.activationId)).toBeUndefined();
  goOn();
  expect(await world.record(outcome.activationId)).toMatchObject({ response: { statusCode: 0, result: { n: 1 } } });
  expect(world.invoked).toEqual(['a', 'hang', 'a']);
});

test('beyond the bound they are refused, and nothing of them is kept', async () => {
  const composing = await world.rise();
  for (let count = 0; count < 3; count++) await world.submit(composing, 's');
  await world.untilHanging(3);
  await expect(world.submit(composing, 's')).rejects.toMatchObject({
    status: 429,
    message: 'Too many concurrent requests in flight (count: 3, allowed: 3). (setting: maxCompositions)',
  });
  // The limit does not apply to primitive actions.
  expect((await composing.invoke(world.request('a', { blocking: true }))).type).toBe('completed');
  world.crash();
  await world.rise();
  await seen('three records', async () => ((await world.records()).length === 3 ? true : undefined));
});

test('a stop lets what runs end', async () => {
  let goOn = (): void => undefined;
  world.hangs = new Promise((resolve) => {
    goOn = resolve;
  });
  const composing = await world.rise();
  const answer = composing.invoke(world.request('outer', { blocking: true }));
  await world.untilHanging();
  const closed = composing.close(5000);
  await expect(composing.invoke(world.request('s'))).rejects.toMatchObject({ status: 503 });
  goOn();
  const outcome = await answer;
  await closed;
  if (outcome.type !== 'completed') throw new Error('it did not end');
  expect(await world.recorded(outcome.activation.activationId)).toMatchObject({ response: { statusCode: 0 } });
  expect(await world.records()).toHaveLength(2);
});

test('what outlasts a stop is answered with its id, and recorded by the next life', async () => {
  const composing = await world.rise();
  const answer = composing.invoke(world.request('s', { blocking: true }));
  await world.untilHanging();
  await composing.close(50);
  const outcome: InvokeOutcome = await answer;
  if (outcome.type !== 'accepted') throw new Error('it ended');
  expect(await world.records()).toEqual([]);
  await world.leave();
  await world.rise();
  expect(await world.record(outcome.activationId)).toMatchObject({ response: stopped });
});

test('while the log cannot be written nothing is accepted', async () => {
  world.hangs = Promise.resolve();
  const composing = await world.rise();
  world.disk.failLater('sync', 0, 'EIO');
  await expect(world.submit(composing, 's')).rejects.toMatchObject({ status: 503 });
  await expect(world.submit(composing, 's')).rejects.toMatchObject({ status: 503 });
  const accepted = () => world.submit(composing, 's').catch(() => undefined);
  expect(await world.record(await seen('one is accepted', accepted))).toMatchObject({ response: { statusCode: 0 } });
});

test('a record that the store does not take at once keeps its message', async () => {
  world.hangs = Promise.resolve();
  const unwilling = storeLike(world.store, { createMany: () => Promise.reject(new Error('no room')) });
  const composing = await world.rise({ store: unwilling });
  const id = await world.submit(composing, 's');
  await seen('it has run', () => world.invoked.length === 3 || undefined);
  await new Promise((done) => setTimeout(done, 50));
  world.crash();
  await world.rise();
  expect(await world.record(id)).toMatchObject({ response: stopped });
});

test('while records wait that take more than they may, nothing is accepted', async () => {
  world.hangs = Promise.resolve();
  let hasRoom = false;
  const small = storeLike(world.store, {
    createMany: (...given) => (hasRoom ? world.store.createMany(...given) : Promise.reject(new Error('no room'))),
  });
  const composing = await world.rise({ store: small, maxUnstoredBytes: 1 });
  const id = await world.submit(composing, 's');
  const refused = () =>
    world.submit(composing, 's').then(
      () => undefined,
      (error: { status: number }) => error.status,
    );
  expect(await seen('it is refused', refused)).toBe(503);
  hasRoom = true;
  expect(await world.record(id)).toMatchObject({ response: { statusCode: 0 } });
  await seen('there is room', async () => ((await refused()) === undefined ? true : undefined));
});
