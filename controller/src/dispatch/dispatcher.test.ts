import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { InFlight } from '../entitlement/in-flight.js';
import { Dispatcher } from './dispatcher.js';
import type { InvokeRequest } from '../invoke/invoke-service.js';

const action: WhiskAction = {
  namespace: 'ns/pkg',
  name: 'act',
  exec: { kind: 'nodejs:20', code: '', binary: false },
  parameters: [
    { key: 'plain', value: 1 },
    { key: 'env', value: 'e', init: true },
    { key: 'locked', value: 'text', encryption: 'aes-128' },
    { key: 'given', value: 'text', encryption: 'aes-256', init: true },
  ],
  limits: { timeout: 1, memory: 1, logs: 1, concurrency: 1 },
  version: '0.0.3',
  publish: false,
  annotations: [],
  updated: 0,
  revision: '3-x',
};
const request: InvokeRequest = {
  identity: {
    subject: 'caller',
    namespace: { name: 'ns2', uuid: 'u' },
    authkey: { api_key: 'u:k' },
    rights: [],
    limits: {},
  },
  action,
  payload: {},
  blocking: false,
  waitMs: 1,
  transactionId: 'tid',
};

let bus: EmbeddedBus;
let dispatcher: Dispatcher;
let sent: ActivationMessage[];
let inFlight: InFlight;
let completed: string[];
/** Receipts of the invoker's topic reject with this error; undefined: they resolve. */
let unsynced: Error | undefined;
let executeOnly: boolean;
beforeEach(async () => {
  sent = [];
  completed = [];
  unsynced = undefined;
  executeOnly = false;
  bus = new EmbeddedBus({ clock: systemClock });
  for (const topic of ['invoker0', 'completed0']) {
    await bus.ensureTopic(topic, { durable: false, maxPendingMessages: 10, maxPendingBytes: 1e6 });
  }
  await bus.subscribe('invoker0', 'test', { maxInFlight: 10 }, (delivery) => {
    sent.push(delivery.message as unknown as ActivationMessage);
    delivery.done();
  });
  const logger = createLogger({ level: 'silent' });
  const chooseInvoker = (): string => 'invoker0';
  const clock = systemClock;
  const state = embeddedState(clock);
  inFlight = new InFlight({ state, limits: loadConfig().limits, clock, metrics: createMetrics(), logger });
  const failingBus: MessageBus = {
    ensureTopic: (...args) => bus.ensureTopic(...args),
    send: (topic, message) =>
      unsynced === undefined ? bus.send(topic, message) : { synced: () => Promise.reject(unsynced) },
    subscribe: (...args) => bus.subscribe(...args),
    lag: (...args) => bus.lag(...args),
    close: () => bus.close(),
  };
  const random = seededRandom(1);
  const store = simulatedStore({ clock, random });
  dispatcher = new Dispatcher({
    ...{ bus: failingBus, store, clock, random, inFlight, logger, instance: 0, chooseInvoker },
    onCompleted: (activationId) => completed.push(activationId),
    get sharedPackagesExecuteOnly() {
      return executeOnly;
    },
  });
  await dispatcher.open();
});
afterEach(async () => {
  await dispatcher.close();
  await bus.close();
});

test('a message has the parameters below the arguments, and tells which are encrypted', async () => {
  await dispatcher.invoke({ ...request, payload: { given: 'by the caller', more: true }, binding: 'ns2/link' });
  expect(sent).toMatchObject([
    {
      action: { path: 'ns/pkg', name: 'act', version: '0.0.3', binding: 'ns2/link' },
      revision: '3-x',
      content: { plain: 1, env: 'e', locked: 'text', given: 'by the caller', more: true },
      initArgs: ['env', 'given'],
      lockedArgs: { locked: 'aes-128' },
    },
  ]);
});

test('of execution only is an action of another namespace, where shared packages are', async () => {
  const own = { ...request.identity, namespace: { ...request.identity.namespace, name: 'ns' } };
  await dispatcher.invoke(request);
  executeOnly = true;
  await dispatcher.invoke(request);
  await dispatcher.invoke({ ...request, identity: own });
  expect(sent.map((message) => message.executeOnly)).toEqual([undefined, true, undefined]);
});

test('a caller that comes after the close waits for no result', async () => {
  await dispatcher.close();
  const outcome = await dispatcher.invoke({ ...request, blocking: true, waitMs: 60_000 });
  expect(outcome).toEqual({ type: 'accepted', activationId: expect.any(String) });
  expect(dispatcher.waiting).toBe(0);
});

test('an array of arguments leaves the parameters out', async () => {
  await dispatcher.invoke({ ...request, payload: [1, 2], cause: 'c' });
  expect(sent).toMatchObject([{ content: [1, 2], initArgs: [], lockedArgs: {}, cause: 'c' }]);
  expect(sent[0]?.action).not.toHaveProperty('binding');
});

test.each([false, true])('what the bus gave up counts as in flight nowhere (blocking: %s)', async (blocking) => {
  unsynced = new Error('no broker has acknowledged it');
  await expect(dispatcher.invoke({ ...request, blocking })).rejects.toMatchObject({ status: 503 });
  expect([inFlight.size, completed.length, dispatcher.waiting]).toEqual([0, 1, 0]);
  unsynced = undefined;
  await dispatcher.invoke(request);
  expect([inFlight.size, completed.length]).toEqual([1, 1]);
});
