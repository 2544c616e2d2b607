// The share of a placement reaches the warm process in which its function runs.
import { expect, test } from '@jest/globals';
import type { Placement, Share } from '@gpuwhisk/common/gpu';
import { GpuHarness, placementOf, userOf } from './gpu-harness.js';

const withTokens = (): Promise<GpuHarness> => GpuHarness.open((harness) => (harness.adjusts = true));
const shareOf = (smRequest: number, smLimit: number): Share => ({
  shareClass: 50,
  smRequest,
  smLimit,
  memoryMiB: 1000,
  tokens: { violation: 0.2 },
});
const placed = (share: Share): Placement => placementOf(1000, { share });

/** Admits a function and runs it in a container. */
function run(harness: GpuHarness, container: string, id: string, action: string, share: Share): void {
  expect(harness.agent.admit(placed(share), userOf(id, action))).toBeUndefined();
  harness.agent.began(userOf(id, action), container);
}

test('a process that was started for another share is moved to that of the function in it, and shown with it', async () => {
  const harness = await withTokens();
  const container = await harness.container(placed(shareOf(0.5, 0.5)), 7);
  await harness.container(placed(shareOf(0.5, 0.5)), 8);
  harness.clients.push(8, 7);
  run(harness, container.id, 'a', 'a', shareOf(0.2, 0.4));
  const { residents } = await harness.look();
  expect(harness.moved).toEqual([{ pid: 7, share: shareOf(0.2, 0.4), forAnother: false }]);
  expect(residents.map(({ share }) => share.smLimit).sort()).toEqual([0.4, 0.5]);
  await harness.look(3);
  expect(harness.moved).toHaveLength(1);
});

test('one that was started for just that share is left alone, until another function runs in it', async () => {
  const harness = await withTokens();
  const container = await harness.container(placed(shareOf(0.5, 0.5)), 7);
  harness.clients.push(7);
  run(harness, container.id, 'a', 'one', shareOf(0.5, 0.5));
  await harness.look();
  harness.agent.ended(userOf('a', 'one'));
  run(harness, container.id, 'b', 'one', shareOf(0.5, 0.5));
  await harness.look();
  expect(harness.moved).toEqual([]);
  harness.agent.ended(userOf('b', 'one'));
  run(harness, container.id, 'c', 'other', shareOf(0.5, 0.5));
  await harness.look();
  expect(harness.moved).toEqual([{ pid: 7, share: shareOf(0.5, 0.5), forAnother: true }]);
});

test('a share that was decided anew reaches the same function, which keeps what was learned of it', async () => {
  const harness = await withTokens();
  const container = await harness.container(placed(shareOf(0.5, 0.5)), 7);
  harness.clients.push(7);
  run(harness, container.id, 'a', 'one', shareOf(0.5, 0.5));
  await harness.look();
  harness.agent.ended(userOf('a', 'one'));
  run(harness, container.id, 'b', 'one', shareOf(0.3, 0.35));
  await harness.look();
  expect(harness.moved).toEqual([{ pid: 7, share: shareOf(0.3, 0.35), forAnother: false }]);
});

test('a process that has made no call of CUDA yet is moved once it has', async () => {
  const harness = await withTokens();
  const container = await harness.container(placed(shareOf(0.5, 0.5)), 7);
  run(harness, container.id, 'a', 'a', shareOf(0.2, 0.4));
  await harness.look();
  expect(harness.moved).toEqual([]);
  harness.clients.push(7);
  await harness.look();
  expect(harness.moved).toHaveLength(1);
});

test('where shares cannot be moved nothing is asked', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placed(shareOf(0.5, 0.5)), 7);
  harness.clients.push(7);
  run(harness, container.id, 'a', 'a', shareOf(0.2, 0.4));
  await harness.look();
  expect(harness.moved).toEqual([]);
});

test('what a container has launched is in the row, as long as its process is there', async () => {
  const harness = await withTokens();
  await harness.container(placed(shareOf(0.5, 0.5)), 7);
  await harness.container(placed(shareOf(0.5, 0.5)), 8);
  const cycles = { cycles: 3, cycleMs: 12, cycleBatch: 4 };
  const launches = { blocks: 900, waits: 2, soloRate: 50, ...cycles, state: 'CONTENTION' as const, budget: 0.4 };
  harness.launched.set(7, launches);
  harness.clients.push(7, 8);
  const shown = async () => (await harness.look()).residents.map((one) => one.launches);
  expect(await shown()).toEqual([launches, undefined]);
  harness.clients.length = 0;
  expect(await shown()).toEqual([undefined, undefined]);
});

test('a process that counts launches which the device did not run is ended, and its action told', async () => {
  const harness = await withTokens();
  const [honest, liar] = [await harness.container(placementOf(1000), 7), await harness.container(placementOf(1000), 8)];
  harness.clients.push(7, 8);
  const launch = (pid: number, blocks: number): void => {
    const { blocks: before = 0 } = harness.launched.get(pid) ?? {};
    const none = { waits: 0, soloRate: 0, cycles: 0, cycleMs: 0, cycleBatch: 0, state: 'NONE' as const };
    harness.launched.set(pid, { blocks: before + blocks, ...none });
  };
  for (const utilisation of [0.5, 0.5, 0, 0.01, 0]) {
    harness.utilisation = utilisation;
    launch(7, 1000);
    launch(8, 1e9);
    await harness.look();
  }
  expect(harness.ended).toEqual([]);
  for (const blocks of [1e9, 1e9, 1e9]) {
    launch(7, 1000);
    launch(8, blocks);
    await harness.look();
  }
  expect(harness.ended).toEqual([liar.id]);
  expect(harness.agent.endingOf(liar.id)).toMatchObject({
    text: expect.stringContaining('did not run'),
    byAction: true,
  });
  expect(harness.agent.endingOf(honest.id)).toBeUndefined();
});
