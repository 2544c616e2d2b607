import { describe, expect, test } from '@jest/globals';
import type { CutStatus, Device, GpuProcess } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { GpuDriverError } from './drivers/gpu-driver.js';
import type { GpuDriver } from './drivers/gpu-driver.js';
import { createSimulatedDriver } from './drivers/simulated-driver.js';
import { Geometry, inOrderOfCreation } from './geometry.js';
import type { GpuContainer } from './gpu-containers.js';

test('slices of three come first, then the largest; what was given is left as it is', () => {
  const wanted = ['1g.5gb', '4g.20gb', '2g.10gb', '3g.20gb', '3g.20gb'];
  expect(inOrderOfCreation(wanted)).toEqual(['3g.20gb', '3g.20gb', '4g.20gb', '2g.10gb', '1g.5gb']);
  expect(wanted[0]).toBe('1g.5gb');
});

const small = ['4g.20gb', '2g.10gb', '1g.5gb'];
const large = ['4g.20gb', '3g.20gb'];

/** A Geometry on one A100 in memory, whose containers, processes and faults the test sets. */
async function opened(changes: (memory: GpuDriver) => Partial<GpuDriver> = () => ({})) {
  const memory = createSimulatedDriver(['a100-40']);
  const driver: GpuDriver = { ...memory, ...changes(memory) };
  let [device] = (await memory.devices()) as [Device];
  const { uuid } = device;
  const troubles = new Set<string>();
  const containers: GpuContainer[] = [];
  const processes: GpuProcess[] = [];
  let atMs = 0;
  const refresh = async (): Promise<void> => void ([device] = (await memory.devices()) as [Device]);
  const geometry = new Geometry({
    driver,
    enforcer: { shut: () => Promise.resolve() },
    inventory: {
      find: (id) => (id === uuid ? device : undefined),
      setTrouble: (_, trouble, is) => void (is ? troubles.add(trouble) : troubles.delete(trouble)),
    },
    gpuContainers: { at: () => containers, awaited: () => [] },
    healer: { end: (one) => void containers.splice(containers.indexOf(one), 1) },
    clock: { ...systemClock, monotonicMs: () => atMs },
    logger: createLogger({ level: 'silent' }),
    statuses: () => [{ uuid, at: 0, usedMemoryMiB: 0, health: { state: 'healthy', reasons: [] }, processes }],
    refresh,
    changed: () => undefined,
  });
  return {
    ...{ memory, geometry, troubles, containers, processes },
    want: (profiles: string[]) => geometry.set({ [uuid]: profiles }),
    /** Lets `ms` pass, and looks at the device again. */
    async look(ms = 0): Promise<CutStatus | undefined> {
      atMs += ms;
      geometry.reconcile();
      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      return geometry.statusOf(uuid);
    },
    /** The slices by position. */
    slices: () =>
      [...device.slices].sort((one, other) => one.startSlot - other.startSlot).map(({ profile }) => profile),
  };
}

const container = (busy: boolean): GpuContainer =>
  ({ users: new Map(busy ? [['a', {}]] : []), ending: false }) as unknown as GpuContainer;
const beingCut = 'it is being cut into other slices';

describe('a wanted geometry', () => {
  test('is cut once nothing runs there: idle instances end at once, runs by themselves', async () => {
    const { want, look, troubles, containers, slices } = await opened();
    containers.push(container(false), container(true));
    want(small);
    expect(await look(200)).toMatchObject({ state: 'draining' });
    expect([containers.length, [...troubles]]).toEqual([1, [beingCut]]);
    containers.pop();
    expect(await look(100)).toEqual({ profiles: small, state: 'done', drainMs: 300, cutMs: 0 });
    expect([slices(), [...troubles]]).toEqual([small, []]);
  });

  test('keeps slices that it wants, and moves those that are in the way of others', async () => {
    const { want, look, memory, slices } = await opened();
    want(['3g.20gb', '3g.20gb']);
    await look();
    const before = (await memory.devices())[0]!.slices;
    want(large);
    await look();
    expect(slices()).toEqual(large);
    expect(before.map(({ uuid }) => uuid)).toContain(
      (await memory.devices())[0]!.slices.find((one) => one.profile === '3g.20gb')!.uuid,
    );
    want([]);
    await look();
    expect((await memory.devices())[0]!.mode).toBe('timeslice');
  });

  test('is refused, and the device works on, where gpu.manage.mig is off or NVIDIA lets no device be cut so', async () => {
    const off = await opened(() => ({ cuts: false }));
    off.want(small);
    expect(await off.look()).toEqual({
      profiles: small,
      state: 'refused',
      reason: 'gpu.manage.mig is off on its node',
    });
    const illegal = await opened();
    illegal.want(['4g.20gb', '4g.20gb']);
    expect(await illegal.look()).toMatchObject({ state: 'refused', reason: expect.stringContaining('do not fit') });
    expect([off.troubles.size, illegal.troubles.size, illegal.slices()]).toEqual([0, 0, []]);
  });

  test('waits for a process that is not of the platform, and does not keep work off meanwhile', async () => {
    const { want, look, troubles, processes, containers, slices } = await opened();
    processes.push({ pid: 7, memoryMiB: 100 });
    want(small);
    expect(await look()).toMatchObject({ state: 'waiting', reason: 'a process not of the platform uses it' });
    expect([troubles.size, slices()]).toEqual([0, []]);
    processes.pop();
    containers.push(container(true));
    expect(await look()).toMatchObject({ state: 'draining' });
    // A process that leaves with its container, or comes too late, does not bring new work to a device that drains.
    processes.push({ pid: 8, memoryMiB: 100 });
    expect(await look()).toMatchObject({ state: 'draining' });
    expect([...troubles]).toEqual([beingCut]);
    containers.pop();
    expect(await look()).toMatchObject({ state: 'done' });
    expect(slices()).toEqual(small);
  });
});

describe('a cut that the driver refuses half-way', () => {
  /** The driver refuses to make slices of the profiles that are in `refused`. */
  const refusing = (refused: Set<string>) =>
    opened((memory) => ({
      createSlice: (device, profile, startSlot) =>
        refused.has(profile)
          ? Promise.reject(new GpuDriverError(`No room for ${profile}.`, 23))
          : memory.createSlice(device, profile, startSlot),
    }));

  test('leaves the former slices, is tried three times, and again once another geometry was wanted', async () => {
    const refused = new Set<string>();
    const { want, look, troubles, slices } = await refusing(refused);
    want(large);
    await look();
    refused.add('1g.5gb');
    want(small);
    const reason = 'No room for 1g.5gb. (it has its former slices)';
    expect(await look()).toEqual({ profiles: small, state: 'waiting', reason });
    expect([slices(), [...troubles]]).toEqual([large, []]);
    expect(await look(9000)).toMatchObject({ state: 'waiting' });
    expect(await look(1000)).toMatchObject({ state: 'waiting' });
    expect(await look(10_000)).toEqual({ profiles: small, state: 'refused', reason });
    refused.clear();
    expect(await look(60_000)).toMatchObject({ state: 'refused' });
    expect([slices(), [...troubles]]).toEqual([large, []]);
    want(large);
    expect(await look()).toMatchObject({ state: 'done' });
    want(small);
    expect(await look()).toMatchObject({ state: 'done' });
    expect(slices()).toEqual(small);
  });

  test('makes a device whole again that was', async () => {
    const { want, look, memory, slices } = await refusing(new Set(['1g.5gb']));
    want(small);
    expect(await look()).toMatchObject({ state: 'waiting' });
    expect([slices(), (await memory.devices())[0]!.mode]).toEqual([[], 'timeslice']);
  });

  test('keeps work off a device that cannot be restored, until a cut succeeds', async () => {
    const refused = new Set<string>();
    const { want, look, troubles } = await refusing(refused);
    want(large);
    await look();
    for (const profile of ['1g.5gb', '3g.20gb']) refused.add(profile);
    want(small);
    const status = await look();
    expect(status?.reason).toBe('No room for 1g.5gb. (its former slices could not be restored: No room for 3g.20gb.)');
    expect([...troubles]).toEqual(['its slices could be neither changed nor restored']);
    refused.clear();
    expect(await look(10_000)).toMatchObject({ state: 'done' });
    expect([...troubles]).toEqual([]);
  });
});
