// Placements on several devices, and which functions may share a device.
import { expect, test } from '@jest/globals';
import type { Placement } from '@gpuwhisk/common/gpu';
import { grantOf } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { GpuHarness, device, placementOf, userOf } from './gpu-harness.js';

const both = ['GPU-0', 'GPU-1'];
const pairOf = (memoryMiB: number, changes: Partial<Placement> = {}): Placement =>
  placementOf(memoryMiB, { devices: both, ...changes });
const on = (uuid: string, memoryMiB: number): Placement => placementOf(memoryMiB, { devices: [uuid] });

test.each([
  ['unlike', pairOf(1000), 'have to be alike', [device(0), { ...device(1), type: 'h100' }]],
  ['one that is not there', pairOf(1000, { devices: ['GPU-0', 'GPU-9'] }), 'have to be alike', [device(0), device(1)]],
  ['the same twice', pairOf(1000, { devices: ['GPU-0', 'GPU-0'] }), 'twice', [device(0), device(1)]],
  ['with a slice', pairOf(1000, { slice: 'MIG-1' }), 'never one of several', [device(0), device(1)]],
  ['with slices', pairOf(1000), 'cut into slices', [0, 1].map((at) => ({ ...device(at), mode: 'mig' as const }))],
])('several devices are refused: %s', async (_, placement, reason, devices) => {
  const { agent } = await GpuHarness.open((harness) => (harness.devices = devices));
  expect(agent.admit(placement, userOf('a'))).toContain(reason);
});

test('all devices of a placement are taken or none, and given back together', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  expect(agent.admit(on('GPU-1', 20_000), userOf('one'))).toBeUndefined();
  expect(agent.admit(pairOf(20_000), userOf('pair'))).toContain('isolation');
  expect(agent.admit(on('GPU-0', 38_000), userOf('other'))).toBeUndefined();
  for (const id of ['one', 'other']) agent.ended(userOf(id));
  expect(agent.admit(pairOf(38_000), userOf('pair'))).toBeUndefined();
  for (const uuid of both) expect(agent.admit(on(uuid, 1000), userOf('one', 'b'))).toContain('isolation');
  agent.ended(userOf('pair'));
  for (const uuid of both) expect(agent.admit(on(uuid, 38_000), userOf(uuid))).toBeUndefined();
});

test('one that is not healthy keeps a placement off all of them', async () => {
  const harness = await GpuHarness.open();
  await harness.wish('GPU-1', 'cordon');
  expect(harness.agent.admit(pairOf(1000), userOf('a'))).toContain('GPU-1: cordoned');
});

test('a container of several devices is shown on each, with what it holds there', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  agent.admit(pairOf(1000), userOf('a'));
  const container = await harness.container(pairOf(1000), 7);
  agent.began(userOf('a'), container.id);
  harness.processes = { 'GPU-0': [{ pid: 7, memoryMiB: 500 }], 'GPU-1': [{ pid: 7, memoryMiB: 1500 }] };
  const shown = { container: container.id, gang: both, action: '/guest/a', activations: ['a'] };
  expect((await harness.look()).residents).toMatchObject([
    { ...shown, device: 'GPU-0', memoryMiB: 1000 },
    { ...shown, device: 'GPU-1', memoryMiB: 1500 },
  ]);
  expect(harness.ended).toEqual([]);
  harness.processes['GPU-1'] = [{ pid: 7, memoryMiB: 1800 }];
  await harness.look(2);
  expect(agent.endingOf(container.id)?.text).toContain('1800 MiB');
});

test('a container of several devices has its own part of the memory on each', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const spread = (gib0: number, gib1: number, changes: Partial<Placement> = {}): Placement =>
    pairOf(30_000, { devices: ['GPU-1', 'GPU-0'], partsMiB: [gib1, gib0], ...changes });
  const { share } = placementOf(30_000);
  const { env } = await agent.accessFor(grantOf(spread(8000, 30_000)));
  expect([env.CUDA_VISIBLE_DEVICES, env.GPUWHISK_MEMORY_MIB]).toEqual(['GPU-0,GPU-1', '8000,30000']);
  expect(agent.admit(on('GPU-0', 30_000), userOf('other'))).toBeUndefined();
  agent.ended(userOf('other'));
  expect(agent.admit(spread(8000, 39_000), userOf('a'))).toContain('GPU-1: too');
  expect(agent.admit(spread(0, 30_000), userOf('a'))).toContain('not split');
  expect(agent.admit(spread(8000, 30_000), userOf('a'))).toBeUndefined();
  const container = await harness.container(spread(8000, 30_000), 7);
  agent.began(userOf('a'), container.id);
  expect((await harness.look()).residents).toMatchObject([
    { device: 'GPU-0', memoryMiB: 8000 },
    { device: 'GPU-1', memoryMiB: 30_000 },
  ]);
  // Each part is a cap of its own; a warm process serves the function however it would be split now.
  expect(agent.admit({ ...spread(18_000, 20_000), joins: true }, userOf('b', 'a'))).toBeUndefined();
  harness.processes = { 'GPU-0': [{ pid: 7, memoryMiB: 9500 }], 'GPU-1': [{ pid: 7, memoryMiB: 20_000 }] };
  await harness.look(2);
  expect(agent.endingOf(container.id)?.text).toContain('9500 MiB');
  expect(share.memoryMiB).toBe(30_000);
});

test('what fails on one device ends a container of several', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(pairOf(1000), 7);
  harness.emit({ type: 'xid', device: 'GPU-1', code: 79 });
  expect(harness.ended).toEqual([container.id]);
});

test('a container of several devices sees all of them; others are not started there meanwhile', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const { share } = placementOf(1000);
  const { env } = await agent.accessFor({ devices: both, share });
  expect(env.CUDA_VISIBLE_DEVICES).toBe('GPU-0,GPU-1');
  agent.admit(pairOf(1000), userOf('a'));
  await expect(agent.accessFor({ devices: ['GPU-1'], share })).rejects.toMatchObject({ elsewhere: true });
  await expect(agent.accessFor({ devices: both, share })).resolves.toBeDefined();
  agent.ended(userOf('a'));
  await expect(agent.accessFor({ devices: ['GPU-1'], share })).resolves.toBeDefined();
});

test('a placement beside one of another namespace, or of one that is to be alone, is refused', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const bob = { ...userOf('b'), action: '/bob/b', namespace: 'bob' };
  agent.admit(placementOf(1000), userOf('a'));
  expect(agent.admit(placementOf(1000), bob)).toMatch(/isolation: .*\(activation a, /);
  expect(agent.admit(placementOf(1000), { ...userOf('c', 'c'), isolation: 'exclusive' })).toContain('isolation');
  const container = await harness.container(placementOf(1000), 7);
  agent.began(userOf('a'), container.id);
  expect(agent.admit(placementOf(1000), bob)).toContain(`(container ${container.id}, `);
  agent.ended(userOf('a'));
  // The container is idle, with its function's data on the device.
  expect(agent.admit(placementOf(1000), bob)).toContain(`(container ${container.id}, `);
  expect(agent.admit(on('GPU-1', 1000), bob)).toBeUndefined();
  expect(agent.admit(placementOf(1000, { reclaim: [container.id] }), bob)).toBeUndefined();
  expect(harness.ended).toEqual([container.id]);
  expect(agent.admit(placementOf(1000), userOf('d'))).toMatch(/isolation: .*\(activation b, /);
});

test("both willing share a device, and a pre-warmer is in nobody's way but that of one that is to be alone", async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  await harness.container(placementOf(1000), 7);
  expect(agent.admit(placementOf(1000), { ...userOf('a'), isolation: 'exclusive' })).toContain('isolation');
  expect(agent.admit(placementOf(1000), { ...userOf('a'), isolation: 'shared' })).toBeUndefined();
  const bob = { ...userOf('b'), action: '/bob/b', namespace: 'bob', isolation: 'shared' as const };
  expect(agent.admit(placementOf(1000), bob)).toBeUndefined();
});
