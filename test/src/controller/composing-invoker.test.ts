// What becomes of sequences and compositions when the controller dies or stops, and at the bounds.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { readActivation } from '@gpuwhisk/common/entities/activation-codec';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import { loadConfig } from '@gpuwhisk/common/config';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { SimulatedStore } from '@gpuwhisk/common/store/simulated-store';
import { simulatedStore } from '@gpuwhisk/common/store/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ComposingInvoker } from '@gpuwhisk/controller/invoke/composing-invoker';
import type { ComposingDependencies } from '@gpuwhisk/controller/invoke/composing-invoker';
import type { InvokeOutcome, InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { simulatedActions } from '../api/simulated-actions.js';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const identity = {
  subject: 'alice',
  namespace: { name: 'alice', uuid: 'u' },
  authkey: { api_key: 'u:k' },
  rights: [],
  limits: {},
};
const never = new Promise<never>(() => undefined);

function action(name: string, components?: string[], conductor = false): WhiskAction {
  return {
    namespace: 'alice',
    name,
    exec:
      components === undefined
        ? { kind: 'nodejs:20', code: '', binary: false }
        : { kind: 'sequence', components: components.map((one) => `/alice/${one}`) },
    parameters: [],
    limits: { timeout: 1000, memory: 256, logs: 10, concurrency: 1 },
    version: '0.0.3',
    publish: false,
    annotations: [{ key: 'conductor', value: conductor }],
    updated: 0,
    revision: '1-a',
  };
}

let actions: Map<string, WhiskAction>;
let random: Random;
let disk: SimulatedDisk;
let store: SimulatedStore;
let lives: { durable: Durable; composing: ComposingInvoker; clock: MortalClock }[];
/** Components that were invoked, over all lives. */
let invoked: string[];

beforeEach(() => {
  random = seededRandom(1);
  disk = new SimulatedDisk(systemClock, random, 0);
  store = simulatedStore({ clock: systemClock, random, latencyMs: 0 });
  lives = [];
  invoked = [];
  actions = new Map(
    [
      action('a'),
      action('hang'),
      action('s', ['a', 'hang', 'a']),
      action('inner', ['hang']),
      action('outer', ['a', 'inner']),
      action('conductor', undefined, true),
    ].map((one) => [one.name, one]),
  );
});

afterEach(async () => {
  for (const { composing, durable } of lives) {
    await composing.close(0);
    await durable.close();
  }
  await store.close();
});

/** What components do: `hang` never ends unless it is told to. */
let hangs: Promise<void>;
beforeEach(() => {
  hangs = never;
});

/** The time of one life: nothing happens in it any more once it has stopped. */
class MortalClock implements Clock {
  private readonly timers = new Set<Timer>();
  private stopped = false;

  now = (): number => systemClock.now();
  monotonicMs = (): number => systemClock.monotonicMs();
  defer = (run: () => void): void => systemClock.defer(run);
  setBackgroundTimer = (delayMs: number, run: () => void): Timer => this.setTimer(delayMs, run);

  setTimer(delayMs: number, run: () => void): Timer {
    if (this.stopped) return { cancel: () => undefined };
    const timer = systemClock.setTimer(delayMs, () => {
      this.timers.delete(timer);
      run();
    });
    this.timers.add(timer);
    return {
      cancel: () => {
        this.timers.delete(timer);
        timer.cancel();
      },
    };
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers) timer.cancel();
  }
}

/** Starts a controller on what is there. */
async function rise(changes: Partial<ComposingDependencies> = {}): Promise<ComposingInvoker> {
  const clock = new MortalClock();
  const durable = await openDurable({ disk, folder: '/log', clock, random });
  await durable.bus.ensureTopic('compositions0', { durable: true, maxPendingMessages: 10, maxPendingBytes: Infinity });
  const { answer } = simulatedActions({
    a: (payload) => payload,
    hang: (payload) => payload,
    conductor: (payload) =>
      Array.isArray(payload) || payload.hung !== undefined ? payload : { action: 'hang', params: { hung: 1 } },
  });
  const composing = new ComposingInvoker({
    bus: durable.bus,
    marks: durable.marks,
    store,
    clock,
    random,
    logger: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
    recordLevels: loadConfig(),
    maxUnstoredBytes: 1_000_000,
    instance: 0,
    primitive: {
      invoke: async (request) => {
        invoked.push(request.action.name);
        if (request.action.name === 'hang') await hangs;
        return answer(request);
      },
    },
    resolver: {
      checkUsable: () => Promise.resolve(),
      resolve: (_, { name }) => {
        const found = actions.get(name);
        return found === undefined ? Promise.reject(noSuchEntity()) : Promise.resolve({ action: found });
      },
    },
    maxLength: 50,
    maxAtOnce: 3,
    ...changes,
  });
  await composing.open();
  lives.push({ durable, composing, clock });
  return composing;
}

/** The power goes; nothing of this life goes on. */
function crash(): void {
  disk.crash();
  store.crash();
  lives.pop()?.clock.stop();
}

function request(name: string, changes: Partial<InvokeRequest> = {}): InvokeRequest {
  const found = actions.get(name) ?? action(name);
  return {
    identity,
    action: found,
    payload: { n: 1 },
    blocking: false,
    waitMs: 60_000,
    transactionId: 't',
    ...changes,
  };
}

async function submit(composing: ComposingInvoker, name: string): Promise<string> {
  const outcome = await composing.invoke(request(name));
  if (outcome.type !== 'accepted') throw new Error('not accepted');
  return outcome.activationId;
}

async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 500; tries++) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`not seen: ${what}`);
}

async function recorded(activationId: string): Promise<WhiskActivation | undefined> {
  try {
    return readActivation(await store.get('activations', `alice/${activationId}`));
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    throw error;
  }
}

const record = (activationId: string): Promise<WhiskActivation> => until('a record', () => recorded(activationId));

async function records(): Promise<WhiskActivation[]> {
  const rows = await store.query('activations', {
    view: 'activations',
    startKey: ['alice', 0],
    endKey: ['alice', '\uffff'],
    limit: 100,
    includeDocs: true,
  });
  return rows.flatMap(({ doc }) => (doc === undefined ? [] : [readActivation(doc)]));
}

const untilHanging = (count = 1): Promise<true> =>
  until('a component hangs', () => invoked.filter((name) => name === 'hang').length >= count || undefined);

const stopped = { statusCode: 3, result: { error: 'The controller stopped while the sequence ran.' } };

test.each(['s', 'conductor'])(
  '%s: what had begun when the power went is recorded as stopped, and not run again',
  async (name) => {
    const id = await submit(await rise(), name);
    await untilHanging();
    crash();
    const before = [...invoked];
    await rise();
    const found = await record(id);
    expect(found).toMatchObject({ name, version: '0.0.3', namespace: 'alice', response: stopped, logs: [] });
    expect(found.annotations).toContainEqual({ key: 'topmost', value: true });
    expect(invoked).toEqual(before);
    crash();
    await rise();
    expect(await record(id)).toEqual(found);
    expect(await records()).toHaveLength(1);
  },
);

test('what was accepted and had not begun is run, once', async () => {
  // No start mark gets to the disk: the first life never begins.
  hangs = Promise.resolve();
  const first = await rise({ marks: { mark: () => () => never, startedBefore: () => false } });
  const id = await submit(first, 's');
  expect(invoked).toEqual([]);
  crash();
  await rise();
  expect(await record(id)).toMatchObject({ response: { statusCode: 0, result: { n: 1 } } });
  expect(invoked).toEqual(['a', 'hang', 'a']);
  crash();
  await rise();
  await new Promise((done) => setTimeout(done, 100));
  expect(invoked).toHaveLength(3);
  expect(await records()).toHaveLength(1);
});

test('what was recorded and not yet noted as done is left alone', async () => {
  hangs = Promise.resolve();
  const first = await rise();
  const id = await submit(first, 's');
  const found = await record(id);
  crash();
  await rise();
  await new Promise((done) => setTimeout(done, 100));
  expect(await record(id)).toEqual(found);
  expect(invoked).toHaveLength(3);
});

test('a nested one that had begun has a record too, with its cause', async () => {
  const composing = await rise();
  const id = await submit(composing, 'outer');
  await untilHanging();
  // What a later 202 waits for is on disk, and so is all that came before.
  await submit(composing, 'inner');
  crash();
  await rise();
  expect(await record(id)).toMatchObject({ response: stopped });
  const nested = await until('the nested record', async () => (await records()).find(({ cause }) => cause === id));
  expect(nested).toMatchObject({ name: 'inner', response: stopped });
  expect(nested.annotations).toContainEqual({ key: 'topmost', value: false });
});

test('what was changed or deleted before it could begin is recorded so', async () => {
  const first = await rise({ marks: { mark: () => () => never, startedBefore: () => false } });
  const changed = await submit(first, 's');
  const deleted = await submit(first, 'outer');
  crash();
  actions.set('s', { ...action('s', ['a']), revision: '2-b' });
  actions.delete('outer');
  await rise();
  const error = async (id: string): Promise<unknown> => (await record(id)).response;
  expect(await error(changed)).toEqual({
    statusCode: 3,
    result: { error: 'Action version is not compatible and cannot be invoked.' },
  });
  expect(await error(deleted)).toEqual({
    statusCode: 3,
    result: { error: 'Action could not be found or may have been deleted.' },
  });
  expect(invoked).toEqual([]);
});

test('a caller who waits too short gets an id, and the sequence goes on', async () => {
  let goOn = (): void => undefined;
  hangs = new Promise((resolve) => {
    goOn = resolve;
  });
  const composing = await rise();
  const outcome = await composing.invoke(request('s', { blocking: true, waitMs: 20 }));
  if (outcome.type !== 'accepted') throw new Error('it did not hang');
  expect(await recorded(outcome.activationId)).toBeUndefined();
  goOn();
  expect(await record(outcome.activationId)).toMatchObject({ response: { statusCode: 0, result: { n: 1 } } });
  expect(invoked).toEqual(['a', 'hang', 'a']);
});

test('beyond the bound they are refused, and nothing of them is kept', async () => {
  const composing = await rise();
  for (let count = 0; count < 3; count++) await submit(composing, 's');
  await untilHanging(3);
  await expect(submit(composing, 's')).rejects.toMatchObject({
    status: 429,
    message: 'Too many concurrent requests in flight (count: 3, allowed: 3).',
  });
  // Primitive actions are not concerned.
  expect((await composing.invoke(request('a', { blocking: true }))).type).toBe('completed');
  crash();
  await rise();
  await until('three records', async () => ((await records()).length === 3 ? true : undefined));
});

test('a stop lets what runs end', async () => {
  let goOn = (): void => undefined;
  hangs = new Promise((resolve) => {
    goOn = resolve;
  });
  const composing = await rise();
  const answer = composing.invoke(request('outer', { blocking: true }));
  await untilHanging();
  const closed = composing.close(5000);
  await expect(composing.invoke(request('s'))).rejects.toMatchObject({ status: 503 });
  goOn();
  const outcome = await answer;
  await closed;
  if (outcome.type !== 'completed') throw new Error('it did not end');
  expect(await recorded(outcome.activation.activationId)).toMatchObject({ response: { statusCode: 0 } });
  expect(await records()).toHaveLength(2);
});

test('what outlasts a stop is answered with its id, and recorded by the next life', async () => {
  const composing = await rise();
  const answer = composing.invoke(request('s', { blocking: true }));
  await untilHanging();
  await composing.close(50);
  const outcome: InvokeOutcome = await answer;
  if (outcome.type !== 'accepted') throw new Error('it ended');
  expect(await records()).toEqual([]);
  await lives.pop()?.durable.close();
  await rise();
  expect(await record(outcome.activationId)).toMatchObject({ response: stopped });
});

test('while the log cannot be written nothing is accepted', async () => {
  hangs = Promise.resolve();
  const composing = await rise();
  disk.failLater('sync', 0, 'EIO');
  await expect(submit(composing, 's')).rejects.toMatchObject({ status: 503 });
  await expect(submit(composing, 's')).rejects.toMatchObject({ status: 503 });
  const accepted = () => submit(composing, 's').catch(() => undefined);
  expect(await record(await until('one is accepted', accepted))).toMatchObject({ response: { statusCode: 0 } });
});

test('a record that the store does not take at once keeps its message', async () => {
  hangs = Promise.resolve();
  const unwilling = storeLike(store, { createMany: () => Promise.reject(new Error('no room')) });
  const composing = await rise({ store: unwilling });
  const id = await submit(composing, 's');
  await until('it has run', () => invoked.length === 3 || undefined);
  await new Promise((done) => setTimeout(done, 50));
  crash();
  await rise();
  expect(await record(id)).toMatchObject({ response: stopped });
});

test('while records wait that take more than they may, nothing is accepted', async () => {
  hangs = Promise.resolve();
  let hasRoom = false;
  const small = storeLike(store, {
    createMany: (...given) => (hasRoom ? store.createMany(...given) : Promise.reject(new Error('no room'))),
  });
  const composing = await rise({ store: small, maxUnstoredBytes: 1 });
  const id = await submit(composing, 's');
  const refused = () =>
    submit(composing, 's').then(
      () => undefined,
      (error: { status: number }) => error.status,
    );
  expect(await until('it is refused', refused)).toBe(503);
  hasRoom = true;
  expect(await record(id)).toMatchObject({ response: { statusCode: 0 } });
  await until('there is room', async () => ((await refused()) === undefined ? true : undefined));
});
