// The agent brings its instances to the leader's desired state.
import { expect, test } from '@jest/globals';
import { gpuDesiredTable } from '@gpuwhisk/common/gpu';
import type { GpuDesired, Placement } from '@gpuwhisk/common/gpu';
import { GpuHarness, placementOf, userOf } from './gpu-harness.js';

const share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB: 1000 } as const;
const placed = (): Placement => placementOf(1000, { share });
const withTokens = (): Promise<GpuHarness> => GpuHarness.open((harness) => (harness.adjusts = true));

async function want(harness: GpuHarness, desired: Partial<GpuDesired>, invoker = 'invoker0'): Promise<void> {
  const row = { epoch: 1, retire: {}, shares: {}, geometry: {}, ...desired };
  await harness.state.setRow(gpuDesiredTable, invoker, row);
}

function run(harness: GpuHarness, container: string, id: string): void {
  expect(harness.agent.admit(placed(), userOf(id, 'a'))).toBeUndefined();
  harness.agent.began(userOf(id, 'a'), container);
}

test('an instance that is to end does so at once where nothing runs in it, else when that has ended', async () => {
  const harness = await GpuHarness.open();
  const [idle, busy, other] = [
    await harness.container(placed(), 7),
    await harness.container(placed(), 8),
    await harness.container(placed(), 9),
  ];
  run(harness, busy.id, 'r');
  await want(harness, { retire: { [idle.id]: null, [busy.id]: null, gone: null } });
  await harness.look();
  expect(harness.ended).toEqual([idle.id]);
  harness.agent.ended(userOf('r', 'a'));
  expect(harness.ended).toEqual([idle.id, busy.id]);
  expect((await harness.look()).residents.map(({ container }) => container)).toEqual([other.id]);
});

test('a share is moved below the class, and stays moved for the next run', async () => {
  const harness = await withTokens();
  const { id } = await harness.container(placed(), 7);
  harness.clients.push(7);
  run(harness, id, 'r');
  await want(harness, { shares: { [id]: { smRequest: 0.2, smLimit: 0.9 } } });
  await harness.look();
  expect(harness.moved.map((one) => one.share)).toEqual([{ ...share, smRequest: 0.2, smLimit: 0.5 }]);
  harness.agent.ended(userOf('r', 'a'));
  run(harness, id, 'next');
  expect((await harness.look()).residents[0]?.share).toMatchObject({ smRequest: 0.2, smLimit: 0.5 });
});

test('where shares cannot be moved, a row of another node, and one of an earlier decider change nothing', async () => {
  const harness = await GpuHarness.open();
  const { id } = await harness.container(placed(), 7);
  await want(harness, { shares: { [id]: { smRequest: 0.2, smLimit: 0.3 } } });
  await want(harness, { retire: { [id]: null } }, 'invoker9');
  expect(harness.agent.admit({ ...placed(), epoch: 5 }, userOf('r', 'a'))).toBeUndefined();
  await want(harness, { epoch: 4, retire: { [id]: null } });
  const { residents } = await harness.look();
  expect([harness.ended, residents[0]?.share]).toEqual([[], share]);
  await want(harness, { epoch: 5, retire: { [id]: null } });
  expect(harness.ended).toEqual([id]);
});

test('a run that lasts for longer than its grace is stopped, and is said to have given way', async () => {
  const harness = await GpuHarness.open();
  const { id } = await harness.container(placed(), 7);
  run(harness, id, 'r');
  let told = 0;
  harness.agent.onRetire(id, () => told++);
  await want(harness, { retire: { [id]: 3000 } });
  await harness.look(2);
  expect([harness.ended, harness.agent.endingOf(id), told]).toEqual([[], undefined, 1]);
  await harness.look(2);
  expect(harness.ended).toEqual([id]);
  expect(harness.agent.endingOf(id)).toMatchObject({ again: true, byAction: false });
});
