// Use of a node's GPUs by namespaces, share × time, as reported to the cluster.
import { expect, test } from '@jest/globals';
import { gpuSpendingCounters } from '@gpuwhisk/common/gpu';
import { GpuHarness, placementOf, userOf } from './gpu-harness.js';

const spentMs = ({ state }: GpuHarness): unknown => gpuSpendingCounters(state).add('guest', 0);

test('a run is charged for as long as it lasts, by looks and by its end', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  await harness.clock.runFor(1700);
  harness.agent.ended(userOf('a'));
  await harness.look(2);
  expect(await spentMs(harness)).toBe(850);
});

test('one whose container is killed between two looks is charged until then, once', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  await harness.clock.runFor(600);
  await harness.clock.runUntil(container.destroy());
  await harness.clock.runFor(200);
  harness.agent.ended(userOf('a'));
  await harness.look(2);
  expect(await spentMs(harness)).toBe(300);
});

test('what was had since the last look is told when the agent closes', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  await harness.clock.runFor(1600);
  await harness.agent.close();
  expect(await spentMs(harness)).toBe(800);
});

test('a container that ends after its run is charged no more', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  await harness.clock.runFor(400);
  harness.agent.ended(userOf('a'));
  await harness.clock.runFor(300);
  await harness.clock.runUntil(container.destroy());
  await harness.look(2);
  expect(await spentMs(harness)).toBe(200);
});
