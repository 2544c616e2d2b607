// The platform's messages have the fields of OpenWhisk's messages, of the same types, and additional ones only of its
// own.
import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { EntityChanges } from '@gpuwhisk/controller/cluster/entity-changes';
import { InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { Dispatcher } from '@gpuwhisk/controller/dispatch/dispatcher';
import { HealthPings } from '@gpuwhisk/invoker/health-pings';
import { ActivationHarness, success } from './activation-harness.js';

const fixtures = new URL('../../fixtures/openwhisk-messages/', import.meta.url);
const fixture = (name: string): JsonObject =>
  JSON.parse(readFileSync(new URL(`${name}.json`, fixtures), 'utf8')) as JsonObject;
const logger = createLogger({ level: 'silent' });
const bounds = { durable: false, maxPendingMessages: 100, maxPendingBytes: Infinity };

/** The types of the fields of `value`; contents of functions and annotations are free. */
function shape(value: JsonValue | undefined): unknown {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object') ? 'list' : value.map(shape);
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  const entries = Object.entries(value).map(([name, item]) => [name, isFree(name) ? 'any' : shape(item)]);
  return Object.fromEntries(entries.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)));
}
const isFree = (name: string): boolean =>
  ['content', 'result', 'limits', 'rights', 'logs', 'initArgs', 'tags', 'dedicatedNamespaces'].includes(name);

/** The message after its way through JSON. */
const sent = (message: object): JsonObject => JSON.parse(JSON.stringify(message)) as JsonObject;

async function collect(bus: EmbeddedBus, topic: string): Promise<JsonObject[]> {
  const got: JsonObject[] = [];
  await bus.ensureTopic(topic, bounds);
  await bus.subscribe(topic, 'test', { maxInFlight: 100 }, (delivery) => {
    got.push(sent(delivery.message));
    delivery.done();
  });
  return got;
}

test('an activation', async () => {
  const bus = new EmbeddedBus({ clock: systemClock });
  const got = await collect(bus, 'invoker0');
  await bus.ensureTopic('completed0', bounds);
  const clock = systemClock;
  const { limits } = loadConfig();
  const inFlight = new InFlight({ state: embeddedState(clock), limits, clock, metrics: createMetrics(), logger });
  const chooseInvoker = (): string => 'invoker0';
  const random = seededRandom(1);
  const store = simulatedStore({ clock, random });
  const dispatcher = new Dispatcher({
    ...{ bus, store, clock, random, inFlight, logger, instance: 0, chooseInvoker },
  });
  await dispatcher.open();
  const action: WhiskAction = {
    ...{ namespace: 'guest/tools', name: 'greet', version: '0.0.3', revision: '3-5d', publish: false, updated: 0 },
    exec: { kind: 'nodejs:20', code: '', binary: false },
    parameters: [{ key: 'secret', value: 'text', encryption: 'aes-128', init: true }],
    limits: { timeout: 1000, memory: 128, logs: 1, concurrency: 1 },
    annotations: [],
  };
  const identity = {
    ...{
      subject: 'guest',
      namespace: { name: 'guest', uuid: 'u' },
      authkey: { api_key: 'u:k' },
      rights: [],
      limits: {},
    },
  };
  const request = { identity, action, payload: {}, blocking: false, waitMs: 1, transactionId: 'tid' };
  await dispatcher.invoke({ ...request, payload: { secret: 'known' } });
  await dispatcher.invoke({ ...request, extraLogging: true, cause: 'a'.repeat(32), binding: 'guest/linked' });
  await dispatcher.close();
  const { traceContext, ...known } = fixture('activation-all-fields');
  expect(traceContext).toBeDefined();
  expect(got.map(shape)).toEqual([shape(fixture('activation')), shape(known)]);
});

test('acknowledgements', async () => {
  const harness = await ActivationHarness.open();
  await harness.run({ blocking: true });
  harness.onRun = () => ({ ...success, logsAfterMs: 10 });
  await harness.run({ activationId: 'b', blocking: true });
  await harness.run({ activationId: 'c' });
  // A run that loaded code has no additional field: that is an annotation.
  const shapes = ['combined', 'result', 'completion', 'completion'].map((name) => shape(fixture(name)));
  expect(harness.acknowledged.map((message) => shape(sent(message)))).toEqual(shapes);
});

test('a ping', async () => {
  const bus = new EmbeddedBus({ clock: systemClock });
  const got = await collect(bus, 'health');
  const { name } = fixture('ping') as unknown as { name: ConstructorParameters<typeof HealthPings>[3] };
  const pings = new HealthPings(bus, systemClock, logger, name);
  await pings.open();
  await Promise.resolve();
  pings.close();
  expect(got).toEqual([fixture('ping')]);
});

test('the invalidation of a cache, both ways', async () => {
  const bus = new EmbeddedBus({ clock: systemClock });
  const changes = new EntityChanges(bus, logger, 0);
  const heard: string[] = [];
  changes.onElsewhere((id) => heard.push(id));
  await changes.open();
  const got = await collect(bus, 'cacheInvalidation');
  bus.send('cacheInvalidation', fixture('cache-invalidation'));
  changes.announce('guest/tools/greet');
  await Promise.resolve();
  expect(heard).toEqual(['guest/tools/greet']);
  const expected = fixture('cache-invalidation') as { key: JsonObject; instanceId: string };
  expect(got[1]).toEqual({ key: { mainId: expected.key.mainId }, instanceId: 'controller0' });
});
