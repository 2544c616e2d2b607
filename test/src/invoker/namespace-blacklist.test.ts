import { beforeEach, expect, test } from '@jest/globals';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import type { SimulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import { NamespaceBlacklist } from '@gpuwhisk/invoker/namespace-blacklist';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const logger = createLogger({ level: 'silent' });
const minuteMs = 60_000;
const neverAsked = (): never => {
  throw new Error('a container was asked');
};

let clock: SimulatedClock;
let store: SimulatedStore;
beforeEach(() => {
  clock = new SimulatedClock();
  store = simulatedStore({ clock, random: seededRandom(1) });
});

test('is read at the start and every five minutes; where that fails, the one before stays', async () => {
  let failing = false;
  const troubled = storeLike(store, {
    query: (database, query) => (failing ? Promise.reject(new Error('no')) : store.query(database, query)),
  });
  await clock.runUntil(store.put('subjects', { _id: 'zero/limits', invocationsPerMinute: 0 }));
  const blacklist = new NamespaceBlacklist(troubled, clock, logger);
  await clock.runUntil(blacklist.start());
  expect(blacklist.has('zero')).toBe(true);
  const namespaces = [{ name: 'space', uuid: 'u', key: 'k' }];
  await clock.runUntil(store.put('subjects', { _id: 'bad', subject: 'bad', namespaces, blocked: true }));
  expect(blacklist.has('space')).toBe(false);
  failing = true;
  await clock.runFor(6 * minuteMs);
  expect([blacklist.has('zero'), blacklist.has('space')]).toEqual([true, false]);
  failing = false;
  await clock.runFor(5 * minuteMs);
  expect([blacklist.has('zero'), blacklist.has('space')]).toEqual([true, true]);
  blacklist.close();
  await clock.runFor(6 * minuteMs);
  expect(await clock.step()).toBe(false);
});

test('an activation of a blocked namespace is answered and neither run nor recorded', async () => {
  const bus = new EmbeddedBus({ clock });
  const acknowledged: JsonObject[] = [];
  const bounds = { durable: false, maxPendingMessages: 100, maxPendingBytes: Infinity };
  for (const topic of ['invoker0', 'completed0']) await bus.ensureTopic(topic, bounds);
  await bus.subscribe('completed0', 'test', { maxInFlight: 100 }, (delivery) => acknowledged.push(delivery.message));
  const factory = createSimulatedFactory({
    ...{ clock, random: seededRandom(1), kinds: [] },
    guest: { init: neverAsked, run: neverAsked },
  });
  const invoker = new Invoker({
    instance: 0,
    bus,
    store,
    factory,
    marks: { startedBefore: () => false, mark: () => () => Promise.resolve() },
    clock,
    logger,
    metrics: createMetrics(),
    pool: {
      memoryMiB: 512,
      maxStarting: 8,
      pauseGraceMs: 1e6,
      idleContainerMs: 1e6,
      stemCells: [],
      stemCellsOnDemand: false,
    },
    resultBounds: { maxResultBytes: 1000, truncationBytes: 1000 },
    recordLevels: loadConfig(),
    blacklist: { has: (namespace) => namespace === 'bad' },
    unlockArguments: createArgumentUnlock({ keys: {} }),
    maxInFlight: 10,
  });
  await clock.runUntil(invoker.start());
  bus.send('invoker0', {
    transid: ['tid', clock.now()],
    action: { path: 'bad', name: 'hello', version: '0.0.1' },
    revision: '1-a',
    user: {
      subject: 'bad',
      namespace: { name: 'bad', uuid: 'u' },
      authkey: { api_key: 'u:k' },
      rights: [],
      limits: {},
    },
    activationId: 'a'.repeat(32),
    rootControllerIndex: { asString: '0', instanceType: 'controller' },
    blocking: true,
    content: {},
    initArgs: [],
    lockedArgs: {},
  });
  await clock.runFor(1000);
  expect(acknowledged).toMatchObject([
    {
      response: {
        activationId: 'a'.repeat(32),
        response: {
          statusCode: 1,
          result: { error: 'The action was not invoked due to a blacklisted namespace.' },
        },
      },
      isSystemError: false,
      instance: { instance: 0 },
    },
  ]);
  expect(invoker.snapshot()).toMatchObject({ pending: 0, containers: 0 });
  expect(await clock.runUntil(store.list('activations', { limit: 10 }))).toEqual([]);
  await clock.runUntil(invoker.close(0));
});
