import { expect, test } from '@jest/globals';
import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { GpuGrant } from '@gpuwhisk/invoker/containers/container-factory';
import { DeviceLedger } from '@gpuwhisk/invoker/gpu-agent/inventory';
import { device } from './gpu-harness.js';
import { PoolHarness } from './pool-harness.js';

const [first, second] = [device(0), device(1)];

function grant(memoryMiB: number, shareClass: ShareClass = 50, uuid = first.uuid): GpuGrant {
  return { devices: [uuid], share: { shareClass, smRequest: 0.1, smLimit: 0.1, memoryMiB } };
}

async function open(options: Parameters<typeof PoolHarness.open>[0] = {}, factory = {}): Promise<PoolHarness> {
  const devices = new DeviceLedger();
  devices.setDevices([first, second]);
  return PoolHarness.open({ memoryMiB: 100_000, devices, ...options }, factory);
}

test('a container on a device waits until the memory of others there is free', async () => {
  const harness = await open();
  const long = harness.submit('one', { gpu: grant(30_000), ms: 5000 });
  const beside = harness.submit('other', { gpu: grant(30_000, 50, second.uuid) });
  const after = harness.submit('third', { gpu: grant(30_000) });
  const [one, other, third] = await harness.clock.runUntil(Promise.all([long, beside, after]));
  expect(other.endedMs).toBeLessThan(one.endedMs);
  expect(third.endedMs).toBeGreaterThan(one.endedMs);
  expect(harness.factory.live.map(({ spec }) => spec.gpu?.devices[0]).sort()).toEqual([first.uuid, second.uuid]);
});

test('an idle container of another function gives up its memory on that device, and only there', async () => {
  const harness = await open();
  const elsewhere = await harness.run('elsewhere', { gpu: grant(30_000, 50, second.uuid) });
  const idle = await harness.run('idle', { gpu: grant(30_000) });
  const next = await harness.run('next', { gpu: grant(20_000) });
  const live = harness.factory.live.map(({ id }) => id);
  expect(live).toContain(elsewhere.container);
  expect(live).toContain(next.container);
  expect(live).not.toContain(idle.container);
});

test('a function that is to have a device does not get a container without one, nor one of another device', async () => {
  const harness = await open({}, { unloading: 'all' });
  const namespace = 'guest';
  const plain = await harness.run('plain', { namespace });
  const there = await harness.run('there', { namespace, gpu: grant(1000, 50, second.uuid) });
  const here = await harness.run('here', { namespace, gpu: grant(1000) });
  expect(new Set([plain.container, there.container, here.container]).size).toBe(3);
});

test('what waits ready on a device serves functions of just its share and memory', async () => {
  const gpus = [grant(2000, 50), grant(4000, 20), grant(1000, 20), grant(2000, 20)];
  const stemCells = gpus.map((gpu) => ({
    spec: { kind: 'nodejs:20', memoryMiB: 128, concurrency: 1, requirements: [], imports: [], cuda: false, gpu },
    initialCount: 1,
  }));
  const harness = await open({ stemCells });
  await harness.clock.runUntil(harness.pool.prewarm());
  const taken = await harness.run('one', { gpu: grant(2000, 20) });
  expect(taken.start).toBe('prewarmed');
  expect(harness.factory.live.find(({ id }) => id === taken.container)?.spec.gpu?.share).toMatchObject({
    shareClass: 20,
    memoryMiB: 2000,
  });
  expect((await harness.run('two', { gpu: grant(500, 10) })).start).toBe('cold');
});

test('functions that started cold have one ready for the next, of as many shares a device as may be', async () => {
  const harness = await open({ stemCellsOnDemand: true, gpuStemCells: 2 });
  for (const share of [10, 20, 30] as const) await harness.run(`one${share}`, { gpu: grant(1000, share) });
  await harness.clock.runFor(1000);
  expect(harness.pool.prewarmed().map(({ spec }) => spec.gpu?.share.shareClass)).toEqual([20, 30]);
});

test('none are kept ready where none may be', async () => {
  const harness = await open({ stemCellsOnDemand: true });
  await harness.run('one', { gpu: grant(1000) });
  await harness.clock.runFor(1000);
  expect(harness.pool.prewarmed()).toEqual([]);
});

test('a container that is to end ends, with its run if it has one', async () => {
  const harness = await open();
  const { container: idle } = await harness.run('idle', { gpu: grant(30_000) });
  const find = (id?: string) => harness.factory.live.find((one) => one.id === id);
  harness.pool.end(find(idle) as NonNullable<ReturnType<typeof find>>);
  const next = await harness.run('idle', { gpu: grant(30_000) });
  expect(next.container).not.toBe(idle);
  const running = harness.submit('idle', { gpu: grant(30_000), ms: 60_000 });
  await harness.clock.runFor(1000);
  harness.pool.end(find(next.container) as NonNullable<ReturnType<typeof find>>);
  const { endedMs } = await harness.clock.runUntil(running);
  expect(endedMs).toBeLessThan(60_000);
  const last = await harness.run('idle', { gpu: grant(30_000) });
  expect(last.container).not.toBe(next.container);
});
