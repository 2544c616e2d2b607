// The queue of a process that never returns.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import { createLogger } from '@gpuwhisk/common/logging';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock as clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { takeOverQueue, takeOverUnplaced } from '@gpuwhisk/controller/cluster/retirements';
import type { RetiredProcess, TakeoverCounts, TakeoverDependencies } from '@gpuwhisk/controller/cluster/retirements';
import { message } from '../invoker/activation-harness.js';

const topicOptions = { durable: false, maxPendingMessages: 10_000, maxPendingBytes: Infinity };
const logger = createLogger({ level: 'silent' });
const silentSinceMs = 1000;

let bus: EmbeddedBus;
let store: ReturnType<typeof simulatedStore>;
let records: RecordWriter;
let usable: number[];
/** Received messages by topic. */
let came: Map<string, JsonObject[]>;
let counts: TakeoverCounts;

const idOf = (n: number): string => n.toString(16).padStart(32, '0');
/** An activation message that was accepted at `atMs`. */
const activation = (n: number, atMs: number, more: Partial<ActivationMessage> = {}): ActivationMessage => ({
  ...{ ...message, activationId: idOf(n), transid: ['tid', atMs] },
  ...more,
});
const dependencies = (): TakeoverDependencies => ({
  ...{ bus, store, records, clock, logger, topicOptions, instance: 7 },
  recordLevels: loadConfig(),
  usableInvokers: () => usable,
  isIdempotent: ({ action }) => Promise.resolve(action.name === 'idempotent'),
  isClosing: () => false,
});
const left = (more: Partial<RetiredProcess> = {}): RetiredProcess => ({
  sort: 'invokers',
  number: 3,
  silentSinceMs,
  isResumed: false,
  ...more,
});
const sendAll = (topic: string, messages: readonly ActivationMessage[]): void => {
  for (const one of messages) bus.send(topic, one as unknown as JsonObject);
};
const idsIn = (topic: string): unknown[] => (came.get(topic) ?? []).map(({ activationId }) => activationId);
const textOf = async (n: number): Promise<unknown> =>
  ((await store.get('activations', `caller/${idOf(n)}`)).response as { result: JsonObject }).result.error;

beforeEach(async () => {
  bus = new EmbeddedBus({ clock });
  store = simulatedStore({ clock, random: seededRandom(1) });
  records = new RecordWriter(store, clock, logger);
  usable = [4];
  counts = { moved: 0, stopped: 0 };
  came = new Map();
  for (const topic of ['invoker3', 'compositions3', 'gpu3']) await bus.ensureTopic(topic, topicOptions);
  for (const topic of ['invoker4', 'completed0', 'gpu7']) {
    await bus.ensureTopic(topic, topicOptions);
    await bus.subscribe(topic, topic, { maxInFlight: 10_000 }, (delivery) => {
      came.set(topic, [...(came.get(topic) ?? []), delivery.message]);
      delivery.done();
    });
  }
  // The topics of ended processes have a group, so that the bus keeps their messages.
  for (const topic of ['invoker3', 'compositions3', 'gpu3']) {
    await (await bus.subscribe(topic, topic, { maxInFlight: 0 }, () => undefined)).close();
  }
});

afterEach(async () => {
  await records.close();
  await bus.close();
});

test('what may have begun is recorded as stopped, what cannot have runs elsewhere, what has a record is left', async () => {
  await store.put('activations', { _id: `caller/${idOf(1)}` });
  const idempotent = { action: { path: 'guest', name: 'idempotent' } };
  const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
  const gpu = { invoker: 'invoker3', devices: ['GPU-0'], share, at: 2000, epoch: 1, version: 1 };
  sendAll('invoker3', [
    activation(1, 500),
    activation(2, 500),
    activation(3, 500, idempotent),
    activation(4, 1001),
    activation(5, 1001, { gpu }),
  ]);
  bus.send('invoker3', { malformed: true });
  expect(await takeOverQueue(dependencies(), left(), counts)).toBe(true);
  expect(counts).toEqual({ moved: 3, stopped: 1 });
  expect(await textOf(2)).toBe('The invoker stopped while the action ran.');
  expect(idsIn('invoker4').sort()).toEqual([idOf(3), idOf(4)]);
  expect(idsIn('completed0')).toEqual([idOf(2)]);
  expect(came.get('gpu7')).toMatchObject([{ activation: { activationId: idOf(5) }, restarted: true }]);
});

test('a place far back tells nothing: what was done before it need not be committed', async () => {
  sendAll(
    'invoker3',
    Array.from({ length: 2003 }, (_, n) => activation(n + 1, 500)),
  );
  await takeOverQueue(dependencies(), left(), counts);
  expect(counts).toEqual({ moved: 0, stopped: 2003 });
});

test('a takeover that ended half-way moves nothing again that it may have moved', async () => {
  sendAll(
    'invoker3',
    Array.from({ length: 52 }, (_, n) => activation(n + 1, 1001)),
  );
  await takeOverQueue(dependencies(), left({ isResumed: true }), counts);
  expect(counts).toEqual({ moved: 2, stopped: 50 });
});

test('nothing is moved before an invoker takes activations', async () => {
  usable = [];
  sendAll('invoker3', [activation(1, 1001)]);
  const over = takeOverQueue(dependencies(), left(), counts);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(counts).toEqual({ moved: 0, stopped: 0 });
  usable = [4];
  await over;
  expect([counts.moved, idsIn('invoker4')]).toEqual([1, [idOf(1)]]);
});

test('sequences of a controller are recorded as stopped, what waited there for a GPU goes on', async () => {
  sendAll('compositions3', [activation(1, 1001)]);
  bus.send('gpu3', { activation: activation(2, 500) as unknown as JsonObject });
  await takeOverQueue(dependencies(), left({ sort: 'controllers' }), counts);
  await takeOverUnplaced(dependencies(), 3, counts);
  expect(counts).toEqual({ moved: 1, stopped: 1 });
  expect(await textOf(1)).toBe('The controller stopped while the sequence ran.');
  expect(came.get('gpu7')).toMatchObject([{ activation: { activationId: idOf(2) }, seenBefore: true }]);
});
