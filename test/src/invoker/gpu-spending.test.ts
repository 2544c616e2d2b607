// Use of a node's GPUs by namespaces, share × time, as reported to the cluster.
import { expect, test } from '@jest/globals';
import { gpuSpendingCounters, gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';
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

/** Use of all functions that the node reports for the costs, ms. */
const costMs = async ({ state }: GpuHarness): Promise<number> => {
  const [use] = [...(await state.rows(gpuUseTable)).values()] as unknown as NodeUse[];
  return (use?.used ?? []).reduce((sum, [, , ms]) => sum + ms, 0);
};

test("runs that another's fault may have ended are not charged, however long they took", async () => {
  const harness = await GpuHarness.open();
  const begin = async (id: string, name: string, pid: number): Promise<void> => {
    const container = await harness.container(placementOf(1000), pid);
    harness.agent.began(userOf(id, name), container.id);
  };
  // One run is counted for the costs while it goes on, as it lasts for minutes.
  await begin('a', 'long', 1);
  await harness.clock.runFor(200_000);
  await begin('b', 'short', 2);
  await harness.clock.runFor(10_000);
  const before = await costMs(harness);
  expect(before).toBeGreaterThan(50_000);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 31 });
  for (const user of [userOf('a', 'long'), userOf('b', 'short')]) harness.agent.ended(user);
  await harness.look(10);
  expect(await costMs(harness)).toBe(before);
  // What was counted of the long run is made up for by its next one.
  await begin('c', 'long', 3);
  await harness.clock.runFor(before);
  harness.agent.ended(userOf('c', 'long'));
  await harness.look(10);
  expect(await costMs(harness)).toBe(before);
  await begin('d', 'long', 4);
  await harness.clock.runFor(2 * before);
  harness.agent.ended(userOf('d', 'long'));
  await harness.look(10);
  expect(await costMs(harness)).toBeGreaterThan(before);
});

test('the use of the minute is taken back, too', async () => {
  const harness = await GpuHarness.open();
  for (const [at, id] of ['a', 'b'].entries()) {
    const container = await harness.container(placementOf(1000), at + 1);
    harness.agent.began(userOf(id, id), container.id);
  }
  await harness.clock.runFor(5000);
  expect(await spentMs(harness)).toBeGreaterThan(3000);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 31 });
  await harness.look(2);
  expect(await spentMs(harness)).toBe(0);
});

test('a function that was alone with its fault is charged', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 1);
  harness.agent.began(userOf('a'), container.id);
  await harness.clock.runFor(1600);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 31 });
  await harness.look(2);
  expect(await spentMs(harness)).toBe(800);
});
