import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { InvokerSupervision } from '@gpuwhisk/controller/balance/invoker-supervision';
import { EntityChanges } from '@gpuwhisk/controller/cluster/entity-changes';
import { HealthPings } from '@gpuwhisk/invoker/health-pings';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const logger = createLogger({ level: 'silent' });

let clock: SimulatedClock;
let durable: Durable;
let supervision: InvokerSupervision;
/** Indexes of the invokers that received a test activation. */
let tested: number[];
let isReadable: boolean;

beforeEach(async () => {
  clock = new SimulatedClock();
  const random = seededRandom(1);
  const disk = new SimulatedDisk(clock, random);
  durable = await clock.runUntil(openDurable({ disk, folder: '/log', clock, random }));
  tested = [];
  const { bus } = durable;
  isReadable = true;
  supervision = new InvokerSupervision({
    ...{ bus, clock, logger, instance: 0 },
    test: (invoker) => tested.push(invoker),
    isReadable: () => isReadable,
  });
  await clock.runUntil(supervision.open());
});

afterEach(async () => {
  await clock.runUntil(supervision.close());
  await clock.runUntil(durable.close());
});

async function startInvoker(instance: number): Promise<HealthPings> {
  const pings = new HealthPings(durable.bus, clock, logger, {
    ...{ instance, userMemory: '1024 MB', instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
    uniqueName: `host${instance}`,
  });
  await clock.runUntil(pings.open());
  await clock.runFor(100);
  return pings;
}

test('an invoker is tested when it comes, up when that went well, and down when it is silent', async () => {
  const pings = await startInvoker(1);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'unhealthy' });
  expect(tested).toEqual([1]);
  expect(supervision.invokers()).toEqual([]);
  supervision.finished(1, 'success');
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'up' });
  expect(supervision.invokers()[1]).toEqual({ instance: 1, memoryMiB: 1024, isUsable: true });
  await clock.runFor(30_000);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'up' });
  pings.close();
  await clock.runFor(12_000);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'down' });
  expect(supervision.invokers()[1]?.isUsable).toBe(false);
  const again = await startInvoker(1);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'unhealthy' });
  expect(tested).toEqual([1, 1]);
  again.close();
});

test('no invoker is down because pings cannot be read', async () => {
  const pings = await startInvoker(1);
  supervision.finished(1, 'success');
  pings.close();
  await clock.runFor(5000);
  isReadable = false;
  await clock.runFor(30_000);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'up' });
  expect(supervision.silenceMs(1)).toBeLessThan(8000);
  isReadable = true;
  await clock.runFor(6000);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'down' });
});

test.each(['ping-older', 'ping', 'ping-newer'])('an OpenWhisk invoker counts by its %s', async (name) => {
  const file = new URL(`../../fixtures/openwhisk-messages/${name}.json`, import.meta.url);
  durable.bus.send('health', JSON.parse(readFileSync(file, 'utf8')) as JsonObject);
  await clock.runFor(100);
  expect(tested).toEqual([2]);
  supervision.finished(2, 'success');
  expect(supervision.invokers()[2]).toEqual({ instance: 2, memoryMiB: 1024, isUsable: true });
});

test('errors make it unhealthy, time-outs unresponsive; tests that succeed follow at once until it is up', async () => {
  const pings = await startInvoker(0);
  supervision.finished(0, 'success');
  for (let count = 0; count < 4; count++) supervision.finished(0, 'system error');
  expect(supervision.health()).toEqual({ 'invoker0/host0': 'unhealthy' });
  tested = [];
  await clock.runFor(11_000);
  expect(tested).toEqual([0]);
  supervision.finished(0, 'system error');
  expect(tested).toEqual([0]);
  await clock.runFor(11_000);
  expect(tested).toEqual([0, 0]);
  // The fourth-last failure leaves the last ten outcomes with the seventh success.
  for (let count = 1; count <= 7; count++) {
    expect(supervision.health()).toEqual({ 'invoker0/host0': 'unhealthy' });
    supervision.finished(0, 'success');
  }
  expect(supervision.health()).toEqual({ 'invoker0/host0': 'up' });
  expect(tested).toHaveLength(8);
  for (let count = 0; count < 4; count++) supervision.finished(0, 'time-out');
  expect(supervision.health()).toEqual({ 'invoker0/host0': 'unresponsive' });
  pings.close();
});

test('one that is drained gets nothing from the next ping on', async () => {
  const pings = await startInvoker(0);
  supervision.finished(0, 'success');
  pings.enable(false);
  await clock.runFor(100);
  expect(supervision.health()).toEqual({ 'invoker0/host0': 'down' });
  pings.enable(true);
  await clock.runFor(100);
  expect(supervision.health()).toEqual({ 'invoker0/host0': 'unhealthy' });
  pings.close();
});

test('one that stops waits until it is sent nothing more', async () => {
  const pings = await startInvoker(0);
  supervision.finished(0, 'success');
  await clock.runUntil(pings.leave());
  expect(supervision.invokers()[0]?.isUsable).toBe(false);
  pings.close();
});

test('what is no ping is left out', async () => {
  durable.bus.send('health', { name: { instance: -1, userMemory: '1 MB' } });
  durable.bus.send('health', { name: 'invoker0' });
  durable.bus.send('health', { name: { instance: 1e9, userMemory: '1 MB' } });
  await clock.runFor(100);
  expect(supervision.health()).toEqual({});
});

test('a ping with a high number lengthens no list, and is forgotten once it is silent', async () => {
  const pings = await startInvoker(1);
  supervision.finished(1, 'success');
  durable.bus.send('health', { name: { instance: 9999, userMemory: '1 MB' } });
  await clock.runFor(100);
  expect(supervision.health()).toMatchObject({ invoker9999: 'unhealthy' });
  expect(supervision.invokers()).toHaveLength(2);
  await clock.runFor(12_000);
  expect(supervision.health()).toEqual({ 'invoker1/host1': 'up' });
  pings.close();
});

test('controllers hear of what others have changed, and not of their own', async () => {
  const heard: string[][] = [[], []];
  const controllers = await Promise.all(
    heard.map(async (ids, instance) => {
      const changes = new EntityChanges(durable.bus, logger, instance);
      changes.onElsewhere((id) => ids.push(id));
      await clock.runUntil(changes.open());
      return changes;
    }),
  );
  controllers[0]?.announce('guest/hello');
  controllers[1]?.announce('guest/pkg/hello');
  durable.bus.send('cacheInvalidation', { key: 7 });
  await clock.runFor(100);
  expect(heard).toEqual([['guest/pkg/hello'], ['guest/hello']]);
  for (const each of controllers) await clock.runUntil(each.close());
});
