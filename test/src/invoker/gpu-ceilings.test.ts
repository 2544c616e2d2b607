// The MPS server limits clients to the largest share that was granted to one of them.
import { expect, test } from '@jest/globals';
import type { Placement, ShareClass } from '@gpuwhisk/common/gpu';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Container, GpuGrant } from '@gpuwhisk/invoker/containers/container-factory';
import { grantOf } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { GpuHarness, placementOf, userOf } from './gpu-harness.js';

const placed = (shareClass: ShareClass, memoryMiB: number): Placement =>
  placementOf(memoryMiB, { share: { shareClass, smRequest: 0.1, smLimit: shareClass / 100, memoryMiB } });
/** Starts a container as a factory does: access first, then the container. */
async function start(harness: GpuHarness, grant: GpuGrant): Promise<Container> {
  await harness.agent.accessFor(grant);
  return harness.clock.runUntil(harness.create(grant));
}

test('the ceiling is there before a process is, and goes down with the container that needed it', async () => {
  const harness = await GpuHarness.open();
  expect(harness.ceilings.get('GPU-0')).toBe('100 % 40960 MiB'); // No function's process exists that must be limited.
  const grant = grantOf(placed(30, 1000));
  await harness.agent.accessFor(grant);
  expect(harness.ceilings.get('GPU-0')).toBe('30 % 1000 MiB');
  expect(harness.ceilings.get('GPU-1')).toBe('100 % 40960 MiB');
  await harness.look(3); // The container takes long to start.
  expect(harness.ceilings.get('GPU-0')).toBe('30 % 1000 MiB');
  harness.agent.failed(grant);
  await harness.look();
  expect(harness.ceilings.get('GPU-0')).toBe('100 % 40960 MiB');
});

test('it is the largest of those that are there', async () => {
  const harness = await GpuHarness.open();
  await start(harness, grantOf(placed(10, 4000)));
  const container = await start(harness, grantOf(placed(70, 1000)));
  expect(harness.ceilings.get('GPU-0')).toBe('70 % 4000 MiB');
  await harness.look(2);
  expect(harness.ceilings.get('GPU-0')).toBe('70 % 4000 MiB');
  await harness.clock.runUntil(container.destroy());
  await harness.look();
  expect(harness.ceilings.get('GPU-0')).toBe('10 % 4000 MiB');
});

test('a registered workload has its own beside functions, as long as it is registered', async () => {
  const harness = await GpuHarness.open();
  await start(harness, grantOf(placed(10, 1000)));
  const workload = { id: 'w', name: 'train', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0.1 };
  await harness.state.setRow(workloadTable, 'w', { ...workload, origin: 'started', mpsPercent: 50, memoryMiB: 9000 });
  await harness.clock.runFor(50);
  expect(harness.ceilings.get('GPU-0')).toBe('50 % 9000 MiB');
  await harness.state.setRow(workloadTable, 'w', { ...workload, origin: 'registered' });
  await harness.look();
  expect(harness.ceilings.get('GPU-0')).toBe('10 % 1000 MiB');
});

test('a container is not started where its share cannot be held', async () => {
  const harness = await GpuHarness.open((harness) => harness.unlimited.add('GPU-0'));
  await expect(harness.agent.accessFor(grantOf(placed(30, 1000)))).rejects.toThrow(
    'cannot be shared: it does not hold them',
  );
  expect(harness.agent.admit(placed(30, 1000), userOf('a'))).toBeUndefined();
  await harness.agent.accessFor({ ...grantOf(placed(30, 1000)), devices: ['GPU-1'] });
  expect(harness.ceilings.get('GPU-1')).toBe('30 % 1000 MiB');
});
