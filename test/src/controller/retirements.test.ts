// Which processes are retired, and how often: the remains are settled once for each process that had the name.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { loadConfig } from '@gpuwhisk/common/config';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { ProcessRegistry } from '@gpuwhisk/common/state/process-registry';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock as clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { until } from '@gpuwhisk/common/testing/until';
import type { JsonObject } from '@gpuwhisk/common/json';
import { Retirements } from '@gpuwhisk/controller/cluster/retirements';
import { message } from '../invoker/activation-harness.js';

const topicOptions = { durable: false, maxPendingMessages: 1000, maxPendingBytes: Infinity };
const logger = createLogger({ level: 'silent' });
const silenceMs = 60_000;

let bus: EmbeddedBus;
let records: RecordWriter;
let registry: ProcessRegistry;
let retirements: Retirements;

/** Leaves a message in the invoker's topic whose run may have begun. */
async function leave(number: number, id: string): Promise<void> {
  const topic = `invoker${number}`;
  await bus.ensureTopic(topic, topicOptions);
  await (await bus.subscribe(topic, topic, { maxInFlight: 0 }, () => undefined)).close();
  const left = { ...message, activationId: id.repeat(32), transid: ['tid', clock.now() - 2 * silenceMs] };
  bus.send(topic, left as unknown as JsonObject);
}

async function settled(): Promise<{ number: number; stopped: number }> {
  await until(async () => (await retirements.retire('invokers', 'a')).isSettled);
  const { number, stopped } = await retirements.retire('invokers', 'a');
  return { number, stopped };
}

beforeEach(() => {
  bus = new EmbeddedBus({ clock });
  const store = simulatedStore({ clock, random: seededRandom(1) });
  records = new RecordWriter(store, clock, logger);
  registry = new ProcessRegistry(store, 'invokers');
  retirements = new Retirements({
    ...{ bus, store, records, clock, logger, topicOptions, instance: 7, state: embeddedState(clock) },
    recordLevels: loadConfig(),
    usableInvokers: () => [4],
    isIdempotent: () => Promise.resolve(false),
    inFlight: { takeOver: () => Promise.resolve([]), settle: () => undefined } as never,
    silenceMs: () => silenceMs,
    controllers: () => new Set(['controller7']),
  });
});

afterEach(async () => {
  retirements.close();
  await records.close();
  await bus.close();
});

test('asked for twice at once, it is settled once', async () => {
  await registry.add({ number: 3, name: 'a', holder: 'folder' });
  await leave(3, 'a');
  const [one, other] = await Promise.all([retirements.retire('invokers', 'a'), retirements.retire('invokers', 'a')]);
  expect(one).toBe(other);
  expect(await settled()).toEqual({ number: 3, stopped: 1 });
});

test('another process that has the name of a retired one is retired in its turn', async () => {
  await registry.add({ number: 3, name: 'a', holder: 'folder' });
  await leave(3, 'a');
  expect(await settled()).toEqual({ number: 3, stopped: 1 });
  await registry.add({ number: 5, name: 'a', holder: 'another folder' });
  await leave(5, 'b');
  expect(await settled()).toEqual({ number: 5, stopped: 1 });
});
