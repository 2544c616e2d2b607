// Estimates of the device memory of containers: contexts, and the memory that a removal frees.
import { expect, test } from '@jest/globals';
import { ContextSizes } from '@gpuwhisk/invoker/gpu-agent/sampler';
import { GpuHarness, device, placementOf, userOf } from './gpu-harness.js';

test('a context is measured on a process that idles before its first function, and shown', async () => {
  const harness = await GpuHarness.open();
  await harness.container(placementOf(1000), 7);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 100 }];
  expect((await harness.look()).status[0]).not.toHaveProperty('contextMiB');
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 252 }];
  const first = await harness.look(3);
  expect(first.status.map(({ contextMiB }) => contextMiB)).toEqual([252, 252]);
  expect(first.residents).toMatchObject([{ memoryMiB: 1000, heldMiB: 252 }]);
});

test('what has loaded a function tells nothing of a context', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.loaded(container.id, 500);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 900 }];
  expect((await harness.look(3)).status[0]).not.toHaveProperty('contextMiB');
});

test('it is of one driver, type and mode, and the least that was seen', () => {
  const sizes = new ContextSizes('580');
  sizes.setDevices([device(0), device(1), { ...device(2), mode: 'mps' }, { ...device(3), type: 'h100' }]);
  sizes.note('GPU-0', 420);
  sizes.note('GPU-1', 400);
  sizes.note('GPU-1', 900);
  sizes.note('GPU-9', 1);
  expect([0, 1, 2, 3, 9].map((at) => sizes.of(`GPU-${at}`))).toEqual([400, 400, undefined, undefined, undefined]);
});

test('once it is known a client is over its memory with less', async () => {
  const harness = await GpuHarness.open();
  await harness.container(placementOf(1000), 7);
  const container = await harness.container(placementOf(1000), 8);
  harness.agent.began(userOf('a'), container.id);
  harness.processes['GPU-0'] = [
    { pid: 7, memoryMiB: 200 },
    { pid: 8, memoryMiB: 1460 },
  ];
  await harness.look(4);
  expect(harness.ended).toEqual([container.id]);
});

test('the time that it took to start and load is told of each', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7, 300);
  expect((await harness.look()).residents).toMatchObject([{ loadMs: 300 }]);
  harness.agent.loaded(container.id, 1200);
  expect((await harness.look()).residents).toMatchObject([{ loadMs: 1500 }]);
});
