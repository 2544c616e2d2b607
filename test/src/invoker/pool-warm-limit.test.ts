// Idle containers with a GPU, and the number of them that a namespace may keep.
import { expect, test } from '@jest/globals';
import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { GpuGrant } from '@gpuwhisk/invoker/containers/container-factory';
import { DeviceLedger } from '@gpuwhisk/invoker/gpu-agent/inventory';
import { device } from './gpu-harness.js';
import { PoolHarness } from './pool-harness.js';
import type { JobOptions } from './pool-harness.js';

const namespace = 'guest';
const gpu = (shareClass: ShareClass = 50): GpuGrant => ({
  devices: [device(0).uuid],
  share: { shareClass, smRequest: 0.1, smLimit: 0.1, memoryMiB: 1000 },
});
const job = (changes: JobOptions = {}): JobOptions => ({ namespace, gpu: gpu(), ...changes });

function open(factory = {}): Promise<PoolHarness> {
  const devices = new DeviceLedger();
  devices.setDevices([device(0)]);
  return PoolHarness.open({ memoryMiB: 100_000, devices }, factory);
}

const idling = ({ factory }: PoolHarness): string[] => factory.live.map(({ id }) => id).sort();

test('the longest idle go beyond the limit, of all functions of the namespace, and no others', async () => {
  const harness = await open();
  const plain = await harness.run('plain', { namespace });
  const other = await harness.run('other', { gpu: gpu() });
  const unlimited = [await harness.run('one', job()), await harness.run('two', job({ gpu: gpu(20) }))];
  expect(idling(harness)).toHaveLength(4);
  const third = await harness.run('three', job({ keepsWarm: 2 }));
  await harness.clock.runFor(100);
  expect(idling(harness)).toEqual([plain, other, unlimited[1], third].map((one) => one?.container).sort());
  expect((await harness.run('two', job({ gpu: gpu(20), keepsWarm: 2 }))).container).toBe(unlimited[1]?.container);
});

test('who may keep none starts cold every time, and what runs is left alone', async () => {
  const harness = await open();
  const long = harness.submit('long', job({ keepsWarm: 0, ms: 5000 }));
  const first = await harness.run('short', job({ keepsWarm: 0 }));
  const second = await harness.run('short', job({ keepsWarm: 0 }));
  expect([first.start, second.start]).toEqual(['cold', 'cold']);
  expect((await harness.clock.runUntil(long)).failure).toBeUndefined();
  await harness.clock.runFor(100);
  expect(idling(harness)).toEqual([]);
});

test('one that has unloaded its function idles, too', async () => {
  const harness = await open({ unloading: 'all' });
  await harness.run('failing', job({ disposition: 'recover' }));
  await harness.clock.runFor(100);
  expect(idling(harness)).toHaveLength(1);
  const next = await harness.run('other', job({ gpu: gpu(20), keepsWarm: 1 }));
  await harness.clock.runFor(100);
  expect(idling(harness)).toEqual([next.container]);
});

test('none is readied ahead beyond the limit', async () => {
  const harness = await open();
  const readied = { readiesAhead: true, ms: 1000 };
  await harness.run('free', job(readied));
  await harness.clock.runFor(1000);
  expect(idling(harness)).toHaveLength(2);
  await harness.run('bound', job({ ...readied, namespace: 'bound', keepsWarm: 1 }));
  await harness.clock.runFor(1000);
  expect(idling(harness)).toHaveLength(3);
});
