import { beforeEach, describe, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { readActivation } from '@gpuwhisk/common/entities/activation-codec';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { loadConfig } from '@gpuwhisk/common/config';
import type { UserLimits } from '@gpuwhisk/common/entities/identity';
import { createArgumentUnlock, createParameterLock } from '@gpuwhisk/common/entities/parameter-encryption';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/store/simulated-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ActivationRun } from '@gpuwhisk/invoker/activation/activation-run';
import type { InvokerContext } from '@gpuwhisk/invoker/activation/invoker-context';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/runnable-action';
import type { InitRequest, RunRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { GuestAnswer } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { PoolJob } from '@gpuwhisk/invoker/pool/action-queue';
import { ContainerPool } from '@gpuwhisk/invoker/pool/container-pool';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { steppedClock } from '../simulation/troubles.js';
import type { SteppedClock } from '../simulation/troubles.js';

const kind = 'nodejs:20';
const logger = createLogger({ level: 'silent' });
const resultBounds = { maxResultBytes: 200, truncationBytes: 100 };
const key128 = 'ra1V6AfOYAv0jCzEdufIFA==';
const success: GuestAnswer = { then: { do: 'result', value: { ok: true } } };
const action: RunnableAction = {
  namespace: 'guest/package',
  name: 'hello',
  version: '0.0.7',
  revision: '1-a',
  kind,
  runtime: kind,
  main: 'main',
  limits: { timeout: 1000, memory: 128, logs: 1, concurrency: 1 },
  annotations: [],
  requirements: [],
  warm: { imports: [], cuda: false },
  code: () => Promise.resolve({ code: 'the code', binary: false }),
};
const message: ActivationMessage = {
  transid: ['tid', 0],
  action: { path: 'guest/package', name: 'hello' },
  revision: '1-a',
  user: {
    subject: 'guest',
    namespace: { name: 'caller', uuid: 'u' },
    authkey: { api_key: 'u:key' },
    rights: [],
    limits: {},
  },
  activationId: 'a',
  rootControllerIndex: { asString: '0', instanceType: 'controller' },
  blocking: false,
  content: { name: 'Ada', SECRET: 'shh', LIST: [1] },
  initArgs: ['SECRET', 'LIST'],
  lockedArgs: {},
};

describe('an activation', () => {
  let base: SimulatedClock;
  let clock: SteppedClock;
  let store: ArtifactStore;
  let context: InvokerContext;
  let pool: ContainerPool;
  /** What the container does, and what it was asked. */
  let onInit: (request: InitRequest) => GuestAnswer;
  let onRun: (request: RunRequest) => GuestAnswer;
  let inits: InitRequest[];
  let runs: RunRequest[];
  let acknowledged: JsonObject[];
  let markSyncMs: number;
  let recordMs: number;
  let closing: boolean;
  /** Which containers can unload. */
  let unloading: 'all' | 'none';

  beforeEach(async () => {
    base = new SimulatedClock();
    clock = steppedClock(base);
    store = simulatedStore({ clock, random: seededRandom(1) });
    onInit = () => success;
    onRun = () => success;
    inits = [];
    runs = [];
    acknowledged = [];
    markSyncMs = 0;
    recordMs = 0;
    closing = false;
    unloading = 'all';
    const bus = new EmbeddedBus({ clock });
    await bus.ensureTopic('completed0', { durable: false, maxPendingMessages: 100, maxPendingBytes: Infinity });
    await bus.subscribe('completed0', 'test', { maxInFlight: 100 }, (delivery) => acknowledged.push(delivery.message));
    const factory = createSimulatedFactory({
      clock,
      random: seededRandom(1),
      kinds: [kind],
      startMs: [100, 100],
      get unloading() {
        return unloading;
      },
      guest: {
        init: (request) => onInit((inits.push(request), request)),
        run: (request) => onRun((runs.push(request), request)),
      },
    });
    await factory.start();
    const bounds = {
      memoryMiB: 512,
      maxStarting: 8,
      pauseGraceMs: 1e6,
      idleContainerMs: 1e6,
      stemCells: [],
      stemCellsOnDemand: false,
    };
    const devices = { claim: () => true, release: () => undefined, missingMiB: () => 0 };
    pool = new ContainerPool(factory, clock, { ...bounds, devices }, logger);
    context = {
      instance: { instance: 0, userMemory: '', instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
      bus,
      records: new RecordWriter(
        storeLike(store, {
          createMany: async (database, documents) => {
            await sleep(clock, recordMs);
            return store.createMany(database, documents);
          },
        }),
        clock,
        logger,
      ),
      marks: {
        startedBefore: () => false,
        mark: () => () => new Promise((resolve) => clock.setTimer(markSyncMs, resolve)),
      },
      clock,
      logger,
      metrics: createMetrics(),
      resultBounds,
      recordLevels: loadConfig(),
      unlockArguments: createArgumentUnlock({ keys: { 'aes-128': [key128] } }),
      isClosing: () => closing,
    };
  });

  /** Hands an activation to the pool; resolves when its record is durable. */
  function submit(changes: Partial<ActivationMessage> = {}, of: RunnableAction = action): Promise<void> {
    const sent: ActivationMessage = { ...message, transid: ['tid', clock.now()], ...changes };
    return new Promise((stored, reject) => {
      const retry = (job: PoolJob): void => pool.submit(job);
      const giveBack = (reason: string): void => reject(new Error(reason));
      pool.submit(new ActivationRun(context, sent, of, { stored, retry, giveBack }));
    });
  }

  /** Runs an activation and reads its record. */
  async function run(changes: Partial<ActivationMessage> = {}, of?: RunnableAction): Promise<WhiskActivation> {
    await base.runUntil(submit(changes, of));
    const id = changes.activationId ?? message.activationId;
    return readActivation(await base.runUntil(store.get('activations', `caller/${id}`)));
  }

  const annotation = (record: WhiskActivation, key: string): unknown => parameterValue(record.annotations, key);

  test('is recorded with what it answered, where and how long it ran', async () => {
    onInit = () => ({ afterMs: 30, then: { do: 'result', value: {} } });
    onRun = () => ({ afterMs: 50, stdout: ['hello'], then: { do: 'result', value: { greeting: 'Hello' } } });
    const record = await run();
    expect(record).toMatchObject({
      namespace: 'caller',
      name: 'hello',
      version: '0.0.7',
      subject: 'guest',
      duration: 80,
      response: { statusCode: 0, result: { greeting: 'Hello' } },
    });
    expect(annotation(record, 'path')).toBe('guest/package/hello');
    expect(annotation(record, 'initTime')).toBe(30);
    expect(annotation(record, 'start')).toBe('cold');
    expect(annotation(record, 'waitTime')).toBe(100);
    expect(annotation(record, 'timeout')).toBe(false);
  });

  test('in a warm container has no initTime', async () => {
    await run();
    const record = await run({ activationId: 'b' });
    expect(annotation(record, 'initTime')).toBeUndefined();
    expect(annotation(record, 'start')).toBeUndefined();
    expect(inits).toHaveLength(1);
  });

  test('with a place on a GPU is recorded with it', async () => {
    const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
    const place = { invoker: 'invoker0', devices: ['GPU-0'], slice: 'MIG-1', share, simulated: true };
    onRun = () => ({ afterMs: 70, then: { do: 'result', value: {} } });
    const placed = (activationId: string): Promise<WhiskActivation> =>
      run({ activationId, gpu: { ...place, at: clock.now() + 40, epoch: 1, version: 1 } });
    const cold = await placed('b');
    const known = { device: 'GPU-0', slice: 'MIG-1', share: 0.3, queueMs: 40, simulated: true };
    expect(annotation(cold, 'gpu')).toEqual({ ...known, actualMs: cold.duration, start: 'cold' });
    expect(annotation(await placed('c'), 'gpu')).toEqual({ ...known, actualMs: 70, start: 'warm' });
    expect(annotation(await run(), 'gpu')).toBeUndefined();
  });

  test('runs together with others as one, and each has its own result, error and record', async () => {
    const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
    const gpu = { invoker: 'invoker0', devices: ['GPU-0'], share, at: clock.now(), epoch: 1, version: 1 };
    const gpuNeed = {
      memoryMiB: 512,
      class: 'inference',
      batch: 4,
      gpus: 1,
      isolation: 'namespace',
      timeoutMs: 1000,
    } as const;
    onRun = () => {
      const value: JsonValue[] = [{ n: 1 }, { error: 'not this one' }, 'The action did not return a dictionary.'];
      return { afterMs: 20, stdout: ['together'], then: { do: 'result', value } };
    };
    const ids = ['one', 'two', 'three'];
    const together = ids.map((activationId, n) => submit({ activationId, gpu, gpuNeed, content: { n } }));
    await base.runUntil(Promise.all(together));
    const recorded = (id: string): Promise<WhiskActivation> =>
      base.runUntil(store.get('activations', `caller/${id}`)).then((document) => readActivation(document));
    const [one, two, three] = await Promise.all(ids.map(recorded));
    expect(runs.map(({ value, batch }) => ({ value, batch }))).toEqual([
      { value: [{ n: 0 }, { n: 1 }, { n: 2 }], batch: '3' },
    ]);
    expect(one?.response).toMatchObject({ statusCode: 0, result: { n: 1 } });
    expect(two?.response).toMatchObject({ statusCode: 1, result: { error: 'not this one' } });
    expect(three?.response).toMatchObject({ statusCode: 2 });
    const line = expect.stringContaining('together');
    for (const record of [one, two]) expect(record?.logs).toEqual([line]);
    expect(three?.logs).toEqual([line, expect.stringContaining('Log data might be missing.')]);
    expect([one, two, three].map((record) => record && annotation(record, 'gpu'))).toMatchObject([
      { batch: 3, start: 'cold' },
      { batch: 3, start: 'warm' },
      { batch: 3, start: 'warm' },
    ]);
    expect([one, two, three].map((record) => record && annotation(record, 'initTime') !== undefined)).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('its duration is what passed, whatever the wall clock did', async () => {
    onRun = () => {
      clock.stepWall(-3_600_000);
      return { afterMs: 70, then: { do: 'result', value: {} } };
    };
    const record = await run();
    expect(record.duration).toBe(70);
    expect(record.end - record.start).toBe(70);
  });

  test('its duration leaves out the wait for its start mark and its code', async () => {
    markSyncMs = 40;
    const slow = { ...action, code: () => new Promise<never>((_, no) => clock.setTimer(500, () => no(new Error()))) };
    expect((await run({}, slow)).duration).toBe(0);
    const code = (): ReturnType<RunnableAction['code']> =>
      new Promise((resolve) => clock.setTimer(500, () => resolve({ code: '', binary: false })));
    const record = await run({ activationId: 'b', action: { path: 'guest', name: 'b' } }, { ...action, code });
    expect(record.duration).toBe(0);
    expect(annotation(record, 'waitTime')).toBe(640);
  });

  test('reaches its code only once its start mark is durable, unless somebody waits for it', async () => {
    await run();
    markSyncMs = 500;
    void submit({ activationId: 'b' });
    await base.runFor(499);
    expect(runs.map((request) => request.activation_id)).toEqual(['a']);
    await base.runFor(2);
    expect(runs.map((request) => request.activation_id)).toEqual(['a', 'b']);
    void submit({ activationId: 'c', blocking: true });
    await base.runFor(1);
    expect(runs.map((request) => request.activation_id)).toEqual(['a', 'b', 'c']);
  });

  test('gives init parameters to the environment and the rest to the run', async () => {
    await run();
    expect(inits[0]?.env).toMatchObject({
      SECRET: 'shh',
      LIST: '[1]',
      __OW_ACTION_NAME: '/guest/package/hello',
      __OW_NAMESPACE: 'caller',
      __OW_API_KEY: 'u:key',
    });
    expect(runs[0]).toMatchObject({ value: { name: 'Ada' }, action_name: '/guest/package/hello', api_key: 'u:key' });
  });

  test('readied ahead is told of no run', async () => {
    const entered = { ...action, warm: { imports: [], cuda: false, entry: 'load' } };
    await run({}, entered);
    await base.runFor(1000);
    expect(inits).toHaveLength(2);
    expect(inits[0]?.env).toMatchObject({
      __OW_ACTIVATION_ID: 'a',
      __OW_TRANSACTION_ID: 'tid',
      __OW_DEADLINE: expect.any(String),
    });
    expect(inits[1]?.env).toMatchObject({ SECRET: 'shh', __OW_ACTION_NAME: '/guest/package/hello' });
    for (const name of ['__OW_ACTIVATION_ID', '__OW_TRANSACTION_ID', '__OW_DEADLINE']) {
      expect(inits[1]?.env).not.toHaveProperty(name);
    }
  });

  test('tells who can unload the digest of its code, nobody else', async () => {
    const code = (): ReturnType<RunnableAction['code']> =>
      Promise.resolve({ code: 'the code', binary: false, digest: '5a' });
    await run({}, { ...action, code });
    unloading = 'none';
    await run({ activationId: 'b', action: { path: 'guest', name: 'b' } }, { ...action, code });
    expect(inits.map(({ digest }) => digest)).toEqual(['5a', undefined]);
  });

  test('gives null to the environment as the empty string', async () => {
    await run({ content: { SECRET: null }, initArgs: ['SECRET'] });
    expect(inits[0]?.env).toHaveProperty('SECRET', '');
  });

  test('decrypts arguments for the environment and the run', async () => {
    const lock = createParameterLock({ current: 'aes-128', keys: { 'aes-128': [key128] } }, seededRandom(1));
    const locked = lock([
      { key: 'name', value: { first: 'Ada' } },
      { key: 'SECRET', value: 'shh' },
    ]);
    const content = { ...Object.fromEntries(locked.map(({ key, value }) => [key, value])), plain: 1 };
    await run({ content, initArgs: ['SECRET'], lockedArgs: { name: 'aes-128', SECRET: 'aes-128' } });
    expect(inits[0]?.env).toHaveProperty('SECRET', 'shh');
    expect(runs[0]?.value).toEqual({ name: { first: 'Ada' }, plain: 1 });
  });

  test('whose arguments cannot be decrypted is recorded so and never run', async () => {
    const record = await run({ content: { token: 'text' }, lockedArgs: { token: 'aes-256' } });
    expect(record.response).toEqual({
      statusCode: 3,
      result: { error: "The parameter 'token' is encrypted with 'aes-256', for which there is no key." },
    });
    expect([inits, runs]).toEqual([[], []]);
    expect((await run({ activationId: 'b' })).response.statusCode).toBe(0);
  });

  test('with init parameters shares no container with another binding', async () => {
    const through = (binding: string): ActivationMessage['action'] => ({ ...message.action, binding });
    await run({ action: through('caller/one') });
    await run({ activationId: 'b', action: through('caller/two') });
    expect(inits).toHaveLength(2);
    await run({ activationId: 'c', action: through('caller/one') });
    expect(inits).toHaveLength(2);
    await run({ activationId: 'd', initArgs: [], action: through('caller/one') });
    await run({ activationId: 'e', initArgs: [], action: through('caller/two') });
    expect(inits).toHaveLength(3);
  });

  test('its key stays here where the annotation says so', async () => {
    await run({}, { ...action, annotations: [{ key: 'provide-api-key', value: false }] });
    expect(inits[0]?.env).not.toHaveProperty('__OW_API_KEY');
    expect(runs[0]).not.toHaveProperty('api_key');
  });

  test.each<[string, GuestAnswer, number, string]>([
    ['says error', { then: { do: 'result', value: { error: 'no' } } }, 1, 'no'],
    ['fails', { then: { do: 'error', error: 'it failed' } }, 2, 'it failed'],
    ['exits', { then: { do: 'exit' } }, 2, 'The action did not produce a valid response and exited unexpectedly.'],
    ['takes too much', { then: { do: 'exhaust' } }, 2, 'The action exhausted its memory and was aborted.'],
    ['never answers', { then: { do: 'hang' } }, 2, 'The action exceeded its time limits of 1000 milliseconds.'],
    [
      'says too much',
      { then: { do: 'result', value: { x: 'x'.repeat(300) } } },
      1,
      `The action produced a response that exceeded the allowed length: 308 > 200 bytes. The truncated response was: {"x":"${'x'.repeat(94)}`,
    ],
  ])('that %s is recorded so', async (what, answer, statusCode, error) => {
    onRun = () => answer;
    const record = await run();
    expect(record.response).toMatchObject({ statusCode, result: { error } });
    expect(annotation(record, 'timeout')).toBe(what === 'never answers');
    expect(record.logs.some((line) => line.includes('Log data might be missing'))).toBe(statusCode === 2);
    onRun = () => success;
    const next = await run({ activationId: 'b' });
    expect(inits).toHaveLength(statusCode === 2 ? 2 : 1);
    // Who answered could be unloaded.
    const start = what === 'fails' ? 'injected' : statusCode === 2 ? 'cold' : undefined;
    expect(annotation(next, 'start')).toBe(start);
  });

  test("says too much by its namespace's own limits, never by wider ones than the system's", async () => {
    onRun = () => ({ then: { do: 'result', value: { x: 'x'.repeat(192) } } });
    const under = async (activationId: string, limits: UserLimits): Promise<unknown> =>
      (await run({ activationId, user: { ...message.user, limits } })).response.result;
    const error = (maxBytes: number, keptBytes: number): object => ({
      error: `The action produced a response that exceeded the allowed length: 200 > ${maxBytes} bytes. The truncated response was: {"x":"${'x'.repeat(keptBytes - 6)}`,
    });
    expect(await under('a', { maxPayloadSize: '1 MB', truncationSize: '10 B' })).toEqual({ x: 'x'.repeat(192) });
    expect(await under('b', { maxPayloadSize: '50 B' })).toEqual(error(50, 100));
    expect(await under('c', { maxPayloadSize: '150 B', truncationSize: '10 B' })).toEqual(error(150, 10));
    expect(await under('d', { maxPayloadSize: '150 B', truncationSize: '1 KB' })).toEqual(error(150, 100));
  });

  test('that does not load is recorded so and never run', async () => {
    onInit = () => ({ then: { do: 'hang' } });
    const record = await run();
    expect(record.response).toMatchObject({
      statusCode: 2,
      result: { error: 'The action exceeded its time limits of 1000 milliseconds during initialization.' },
    });
    expect(annotation(record, 'initTime')).toBe(1000);
    expect(runs).toEqual([]);
  });

  test('that a container turns away goes to another', async () => {
    onRun = () => ({ then: { do: 'bye', value: {} } });
    await run();
    onRun = () => success;
    expect((await run({ activationId: 'b' })).response.statusCode).toBe(0);
    expect(inits).toHaveLength(2);
  });

  test('somebody waits for is acknowledged with the record before it is stored', async () => {
    onRun = () => ({ afterMs: 20, then: { do: 'result', value: { ok: 1 } } });
    const record = await run({ blocking: true });
    expect(acknowledged).toHaveLength(2);
    expect(acknowledged[0]).toMatchObject({ response: { activationId: 'a', response: record.response } });
    expect(acknowledged[1]).toMatchObject({ activationId: 'a', isSystemError: false });
  });

  test('somebody waits for is acknowledged once it is stored, where the store lags behind', async () => {
    await run();
    recordMs = 500;
    const stored: string[] = [];
    const first = submit({ activationId: 'b', blocking: true }).then(() => stored.push('b'));
    await base.runFor(100);
    const answered = (): unknown[] => acknowledged.filter((sent) => 'response' in sent);
    expect(answered()).toHaveLength(1);
    const second = submit({ activationId: 'c', blocking: true }).then(() => stored.push('c'));
    await base.runFor(200);
    expect(runs).toHaveLength(3);
    expect(answered()).toHaveLength(1);
    await base.runUntil(Promise.all([first, second]));
    await base.runFor(10);
    expect(stored).toEqual(['b', 'c']);
    expect(answered()).toMatchObject([{ response: { activationId: 'b' } }, { response: { activationId: 'c' } }]);
  });

  test('that the platform itself cut short is left to the next life', async () => {
    onRun = () => ({ then: { do: 'hang' } });
    let recorded = false;
    void submit({ blocking: true }).then(() => {
      recorded = true;
    });
    await base.runFor(500);
    expect(runs).toHaveLength(1);
    closing = true;
    await base.runUntil(pool.close());
    await base.runFor(5000);
    expect(recorded).toBe(false);
    expect(acknowledged).toEqual([]);
  });
});
