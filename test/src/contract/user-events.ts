import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { eventsTopic, openUserEvents } from '@gpuwhisk/common/user-events';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import { until } from '../support/running-platform.js';

const alice = { subject: 'alice-subject', namespace: { name: 'alice', uuid: 'alice-uuid' } };

/** The record of an activation in another namespace's package, as invokers write it. */
const record: WhiskActivation = {
  namespace: 'alice',
  name: 'resize',
  version: '0.0.1',
  subject: 'alice-subject',
  activationId: 'a'.repeat(32),
  start: 1000,
  end: 1030,
  duration: 30,
  cause: 'b'.repeat(32),
  response: { statusCode: 1, result: { error: { statusCode: '404', text: 'no such image' } }, size: 20 },
  logs: [],
  publish: false,
  annotations: [
    { key: 'limits', value: { memory: 256, timeout: 60_000, logs: 10, concurrency: 1 } },
    { key: 'path', value: 'bob/images/resize' },
    { key: 'kind', value: 'nodejs:20' },
    { key: 'causedBy', value: 'sequence' },
    { key: 'waitTime', value: 7 },
    { key: 'initTime', value: 11 },
  ],
};

/** Registers the cases of user events over a bus. */
export function testUserEvents(name: string, open: () => Promise<{ bus: MessageBus; close(): Promise<void> }>): void {
  describe(`user events over ${name}`, () => {
    let bus: MessageBus;
    let close: () => Promise<void>;
    let registry: Registry;
    let events: UserEvents;

    beforeEach(async () => {
      ({ bus, close } = await open());
      registry = new Registry();
      events = await openUserEvents({ bus, clock: systemClock, registry, source: 'invoker0' });
    });

    afterEach(() => close());

    const consume = async (): Promise<JsonObject[]> => {
      const got: JsonObject[] = [];
      await bus.subscribe(eventsTopic, eventsTopic, { maxInFlight: 100 }, (delivery) => {
        got.push(delivery.message);
        delivery.done();
      });
      return got;
    };
    const dropped = async (): Promise<number> => Number(/dropped_total (\d+)/.exec(await registry.metrics())?.[1] ?? 0);

    test('those of activations and limits have the fields of OpenWhisk', async () => {
      const got = await consume();
      const sentMs = Date.now();
      events.activation(record, alice);
      events.activation({ ...record, annotations: [], response: { statusCode: 0 } }, alice);
      events.metric('ConcurrentInvocations', 3, alice);
      await until('they came', () => got.length === 2, 30_000);
      const shared = {
        source: 'invoker0',
        subject: 'alice-subject',
        namespace: 'alice',
        userId: 'alice-uuid',
        timestamp: expect.any(Number),
      };
      expect(got).toEqual([
        {
          ...shared,
          eventType: 'Activation',
          body: {
            name: 'bob/images/resize',
            activationId: 'a'.repeat(32),
            statusCode: 1,
            duration: 30,
            waitTime: 7,
            initTime: 11,
            kind: 'nodejs:20',
            conductor: false,
            memory: 256,
            causedBy: 'sequence',
            size: 20,
            userDefinedStatusCode: 404,
          },
        },
        { ...shared, eventType: 'Metric', body: { metricName: 'ConcurrentInvocations', metricValue: 3 } },
      ]);
      expect(got[0]?.timestamp).toBeGreaterThanOrEqual(sentMs);
      expect(await dropped()).toBe(0);
    });

    test.each([
      [{ statusCode: 201 }, 201],
      [{ error: { statusCode: 502 }, statusCode: 201 }, 502],
      [{ error: 'no', statusCode: 'many' }, 400],
      [{ error: 'no' }, undefined],
      [[1], undefined],
    ])('the status code that an action gives: %j', async (result, code) => {
      const got = await consume();
      events.activation({ ...record, response: { statusCode: 0, result } }, alice);
      await until('it came', () => got.length === 1, 30_000);
      expect((got[0]?.body as JsonObject).userDefinedStatusCode).toBe(code);
    });

    test('what cannot be sent at once is dropped and counted; who sends neither waits nor fails', async () => {
      for (let n = 0; n < 5000; n++) events.metric('TimedRateLimit', 1, alice);
      expect(await dropped()).toBe(4000);
    });
  });
}
