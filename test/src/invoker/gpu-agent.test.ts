import { expect, test } from '@jest/globals';
import { grantOf } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { GpuHarness, device, deviceMiB, placementOf, userOf } from './gpu-harness.js';

test('the row shows the devices, shared by MPS, and is gone when the agent closes', async () => {
  const harness = await GpuHarness.open();
  const row = await harness.row();
  expect(row.devices.map(({ uuid, mode }) => [uuid, mode])).toEqual([
    ['GPU-0', 'mps'],
    ['GPU-1', 'mps'],
  ]);
  expect(row.status).toMatchObject([{ utilisation: 0.5, health: { state: 'healthy', reasons: [] } }, {}]);
  const later = await harness.look();
  expect(later.version).toBeGreaterThan(row.version);
  await harness.agent.close();
  await expect(harness.row()).rejects.toThrow('no row');
});

test('a placement of an earlier epoch is refused, one of the same or a later one is taken', async () => {
  const { agent } = await GpuHarness.open();
  expect(agent.admit(placementOf(1000, { epoch: 5 }), userOf('a'))).toBeUndefined();
  expect(agent.admit(placementOf(1000, { epoch: 4 }), userOf('b'))).toContain('epoch 4');
  expect(agent.admit(placementOf(1000, { epoch: 5 }), userOf('c'))).toBeUndefined();
});

test('a container starts once the clients that a fault has hit are gone, and nothing is started again for that', async () => {
  const harness = await GpuHarness.open();
  const opened = harness.opened.length;
  harness.enforcerProblems.set('GPU-0', 'a fault has hit all of its clients');
  let hasStarted = false;
  const starting = harness.agent.accessFor(grantOf(placementOf(1000))).then(() => (hasStarted = true));
  await harness.clock.runFor(1000);
  expect(hasStarted).toBe(false);
  harness.enforcerProblems.delete('GPU-0');
  await harness.clock.runUntil(starting);
  expect(harness.opened).toHaveLength(opened);
});

test('containers that start together share one check of the enforcer, and one that starts later has its own', async () => {
  const { agent, clock, checked } = await GpuHarness.open();
  const start = (device = 'GPU-0'): Promise<unknown> =>
    agent.accessFor(grantOf(placementOf(1000, { devices: [device] })));
  checked.length = 0;
  await Promise.all([start(), start(), start('GPU-1'), start()]);
  await start();
  expect(checked).toEqual(['GPU-0', 'GPU-1']);
  await clock.runFor(250);
  await start();
  expect(checked).toEqual(['GPU-0', 'GPU-1', 'GPU-0']);
});

test('an enforcer that dies right after a check is started again by the next container, and checked anew then', async () => {
  const harness = await GpuHarness.open();
  const start = (): Promise<unknown> => harness.agent.accessFor(grantOf(placementOf(1000)));
  await start();
  harness.opened.length = 0;
  harness.enforcerDead.add('GPU-0');
  await start();
  expect(harness.opened).toEqual(['GPU-0']);
});

test('what a fault has left is found by each container that starts, until it is gone', async () => {
  const harness = await GpuHarness.open();
  const { agent, clock, checked } = harness;
  harness.enforcerProblems.set('GPU-0', 'a fault has hit all of its clients');
  const starting = [1, 2].map(() => agent.accessFor(grantOf(placementOf(1000))));
  await clock.runFor(200);
  harness.enforcerProblems.delete('GPU-0');
  checked.length = 0;
  await clock.runUntil(Promise.all(starting));
  expect(checked).toEqual(['GPU-0']);
});

test('no placement is taken once the state of the cluster was out of reach for as long as a row stands, until it is back', async () => {
  const harness = await GpuHarness.open();
  const { agent, state, clock } = harness;
  const setRow = state.setRow.bind(state);
  state.setRow = () => Promise.reject(new Error('Redis does not answer'));
  await clock.runFor(3000);
  expect(agent.admit(placementOf(1000), userOf('a'))).toBeUndefined();
  await clock.runFor(3000);
  expect(agent.admit(placementOf(1000), userOf('b'))).toContain('may not know the deciding controller');
  state.setRow = setRow;
  await clock.runFor(1100);
  expect(agent.admit(placementOf(1000), userOf('b'))).toBeUndefined();
});

test.each([
  ['an unknown device', placementOf(1000, { devices: ['GPU-9'] }), 'there is no device GPU-9'],
  ['an unknown slice', placementOf(1000, { slice: 'MIG-1' }), 'there is no slice MIG-1'],
  ['no device', placementOf(1000, { devices: [] }), 'there is no device'],
  ['more than the device has', placementOf(deviceMiB), 'too small (capacityMiB 38912, needMiB 40960)'],
])('a placement on %s is refused', async (_, placement, reason) => {
  const { agent } = await GpuHarness.open();
  expect(agent.admit(placement, userOf('a'))).toContain(reason);
});

test('memory that was promised is given back when the activation ends', async () => {
  const { agent } = await GpuHarness.open();
  expect(agent.admit(placementOf(30_000), userOf('a'))).toBeUndefined();
  expect(agent.admit(placementOf(30_000), userOf('b'))).toMatch(/too (small|little free memory) .*8912/);
  agent.ended(userOf('a'));
  expect(agent.admit(placementOf(30_000), userOf('b'))).toBeUndefined();
});

test('one that joins others of its function needs no memory of its own, as long as there are others', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const joining = placementOf(30_000, { joins: true });
  agent.admit(placementOf(30_000), userOf('a'));
  expect(agent.admit(joining, userOf('b'))).toBeUndefined();
  expect(agent.admit(joining, userOf('c', 'another'))).toContain('too little free memory');
  const container = await harness.container(placementOf(30_000), 7);
  agent.began(userOf('a'), container.id);
  expect(agent.admit(joining, userOf('d'))).toBeUndefined();
  expect(agent.admit(placementOf(30_000), userOf('e'))).toContain('too little free memory');
  agent.ended(userOf('a'));
  expect(agent.admit(joining, userOf('f'))).toBeUndefined();
  expect(agent.admit(placementOf(30_000), userOf('g'))).toContain('too little free memory');
});

test('a container is a resident with who runs in it, and its memory is in use while somebody does', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  agent.admit(placementOf(30_000), userOf('a'));
  const container = await harness.container(placementOf(30_000), 7);
  agent.began(userOf('a'), container.id);
  const busy = { container: container.id, action: '/guest/a', namespace: 'guest', memoryMiB: 30_000 };
  expect((await harness.look()).residents).toMatchObject([{ ...busy, activations: ['a'] }]);
  expect(agent.admit(placementOf(30_000), userOf('b'))).toContain('too little free memory');
  agent.ended(userOf('a'));
  expect((await harness.look()).residents).toMatchObject([{ ...busy, activations: [] }]);
  expect(agent.admit(placementOf(30_000, { reclaim: [container.id] }), userOf('b'))).toBeUndefined();
  expect(harness.ended).toEqual([container.id]);
  expect((await harness.look()).residents).toEqual([]);
});

test('what was to make room and runs something again is not ended', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  const placement = placementOf(1000, { reclaim: [container.id] });
  expect(harness.agent.admit(placement, userOf('b'))).toContain('is busy again');
  expect(harness.ended).toEqual([]);
});

test('processes that are none of ours are shown, and their memory is not given away', async () => {
  const harness = await GpuHarness.open();
  harness.processes['GPU-0'] = [{ pid: 99, memoryMiB: 30_000 }];
  const { status } = await harness.look();
  expect(status[0]).toMatchObject({ usedMemoryMiB: 30_000, processes: [{ pid: 99, memoryMiB: 30_000 }] });
  expect(status[0]?.processes[0]).not.toHaveProperty('container');
  expect(harness.agent.admit(placementOf(10_000), userOf('a'))).toMatch(/too (small|little free memory) .*8912/);
});

test('what its container is started with', async () => {
  const { agent } = await GpuHarness.open();
  const { share } = placementOf(1000);
  await expect(agent.accessFor({ devices: ['GPU-1'], share })).resolves.toEqual({
    env: { CUDA_VISIBLE_DEVICES: 'GPU-1', GPUWHISK_MEMORY_MIB: '1000', CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '50' },
    binds: [{ path: '/run/mps/GPU-1', mode: 'rw' }],
    libraries: [],
    oneUser: false,
  });
  await expect(agent.accessFor({ devices: ['GPU-9'], share })).rejects.toMatchObject({ elsewhere: true });
});

test('a lost device ends its containers with a reason and gets no more work', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const container = await harness.container(placementOf(1000), 7);
  const other = await harness.container(placementOf(1000, { devices: ['GPU-1'] }), 8);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 79 });
  expect(harness.ended).toEqual([container.id]);
  expect(agent.endingOf(container.id)).toEqual({
    text: 'The GPU that the action ran on was lost: Xid 79: the device has fallen off the bus.',
    byAction: false,
  });
  expect(agent.endingOf(other.id)).toBeUndefined();
  const { status } = await harness.look();
  expect(status.map(({ health }) => health.state)).toEqual(['offline', 'healthy']);
  expect(agent.admit(placementOf(1000), userOf('a'))).toContain('offline');
  await expect(agent.accessFor({ devices: ['GPU-0'], share: placementOf(1).share })).rejects.toThrow(
    'fallen off the bus',
  );
});

test('a device that the driver does not list any more is lost', async () => {
  const harness = await GpuHarness.open();
  harness.devices = [device(1)];
  const { status } = await harness.look();
  expect(status.find(({ uuid }) => uuid === 'GPU-0')?.health.state).toBe('offline');
});

test('a fault of the hardware drains the device until an operator uncordons it', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const busy = await harness.container(placementOf(1000), 7);
  agent.began(userOf('a'), busy.id);
  const idle = await harness.container(placementOf(1000), 8);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 48 });
  expect(harness.ended).toEqual([idle.id]);
  expect((await harness.look()).status[0]?.health).toEqual({
    state: 'draining',
    reasons: ['Xid 48: uncorrectable memory error'],
  });
  await harness.wish('GPU-0', 'uncordon');
  expect((await harness.look()).status[0]?.health.state).toBe('healthy');
});

test('an operator cordons, drains and uncordons a device', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  const idle = await harness.container(placementOf(1000), 7);
  await harness.wish('GPU-0', 'cordon');
  expect(agent.admit(placementOf(1000), userOf('a'))).toContain('cordoned');
  expect(harness.ended).toEqual([]);
  await harness.wish('GPU-0', 'drain');
  expect(harness.ended).toEqual([idle.id]);
  await harness.wish('GPU-9', 'cordon');
  await harness.wish('GPU-0', 'uncordon');
  expect(agent.admit(placementOf(1000), userOf('a'))).toBeUndefined();
});

test("a function's fault replaces all clients; three by one action alone within ten minutes and it gets no GPU", async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  for (const times of [1, 2, 3]) {
    expect(agent.admit(placementOf(1000), userOf('a', 'bad'))).toBeUndefined();
    const container = await harness.container(placementOf(1000), times);
    agent.began(userOf('a', 'bad'), container.id);
    harness.emit({ type: 'xid', device: 'GPU-0', code: 31 });
    expect(agent.endingOf(container.id)).toMatchObject({ byAction: true });
    agent.ended(userOf('a', 'bad'));
  }
  expect(agent.admit(placementOf(1000), userOf('a', 'bad'))).toContain('broke a GPU 3 times');
  expect(agent.admit(placementOf(1000), userOf('a', 'good'))).toBeUndefined();
  await harness.clock.runFor(600_000);
  expect(agent.admit(placementOf(1000), userOf('b', 'bad'))).toBeUndefined();
});

test('a fault among several versions is told in the row, with those that ran, and once', async () => {
  const harness = await GpuHarness.open();
  const { agent } = harness;
  expect((await harness.row()).faults).toBeUndefined();
  const run = async (id: string, name: string, pid: number): Promise<string> => {
    const container = await harness.container(placementOf(1000), pid);
    agent.began({ ...userOf(id, name), version: '0.0.2' }, container.id);
    return container.id;
  };
  const busy = [await run('a', 'one', 1), await run('b', 'one', 2), await run('c', 'other', 3)];
  await harness.container(placementOf(1000), 4);
  harness.emit({ type: 'xid', device: 'GPU-0', code: 31 });
  for (const id of busy) {
    const ending = agent.endingOf(id);
    expect(ending).toMatchObject({ byAction: false, again: true });
    expect(ending?.text).toMatch(/isolation.*exclusive.*MIG slice/);
    expect(ending?.text).not.toContain('/guest/');
  }
  const functions = ['one', 'other'].map((name) => ({ action: `/guest/${name}`, version: '0.0.2' }));
  expect((await harness.look()).faults).toEqual([{ at: expect.any(Number), place: 'GPU-0', functions }]);
});

test('an enforcer that has died serves again, and its containers are replaced', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  const other = await harness.container(placementOf(1000, { devices: ['GPU-1'] }), 8);
  harness.opened.length = 0;
  harness.enforcerProblems.set('GPU-0', 'the MPS daemon has ended');
  await harness.look(6);
  expect(harness.opened).toEqual(['GPU-0']);
  expect(harness.ended).toEqual([container.id]);
  expect(harness.agent.endingOf(container.id)?.text).toContain('the MPS daemon has ended');
  expect(harness.agent.endingOf(other.id)).toBeUndefined();
});

test('an enforcer that fails again and again cordons its device', async () => {
  const harness = await GpuHarness.open();
  for (let times = 0; times < 6; times++) {
    harness.enforcerProblems.set('GPU-0', 'the MPS daemon has ended');
    await harness.look(10);
  }
  expect((await harness.row()).status[0]?.health.state).toBe('cordoned');
});

test('a process that escaped from its share is ended', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 500 }];
  harness.escaped.add(7);
  await harness.look();
  expect(harness.ended).toEqual([container.id]);
});

test('a client over its memory is ended, and its function is told', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.agent.began(userOf('a'), container.id);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 1500 }];
  await harness.look(3);
  expect(harness.ended).toEqual([]);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 1800 }];
  await harness.look(2);
  expect(harness.ended).toEqual([container.id]);
  expect(harness.agent.endingOf(container.id)).toEqual({
    text: 'The action used 1800 MiB of GPU memory, more than its limit of 1000 MiB, and was aborted.',
    byAction: true,
  });
});

test('a container that holds more without an action than before its first one is recycled', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(1000), 7);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 300 }];
  await harness.look();
  harness.agent.began(userOf('a'), container.id);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 900 }];
  await harness.look();
  harness.agent.ended(userOf('a'));
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 400 }];
  await harness.look();
  expect(harness.ended).toEqual([]);
  harness.unbound.add(container.id);
  await harness.look();
  expect(harness.ended).toEqual([container.id]);
});

test('one that nobody looked at before its first function is measured when it waits, and recycled once it holds more', async () => {
  const harness = await GpuHarness.open();
  const containers = [await harness.container(placementOf(1000), 7), await harness.container(placementOf(1000), 8)];
  for (const { id } of containers) harness.agent.began(userOf('a'), id);
  const holds = (...memoryMiB: number[]): void => {
    harness.processes['GPU-0'] = memoryMiB.map((each, at) => ({ pid: 7 + at, memoryMiB: each }));
  };
  holds(900, 900);
  await harness.look();
  harness.agent.ended(userOf('a'));
  for (const { id } of containers) harness.unbound.add(id);
  holds(300, 300);
  await harness.look();
  expect(harness.ended).toEqual([]);
  holds(300, 400);
  await harness.look();
  expect(harness.ended).toEqual([containers[1]?.id]);
});

test('one that holds more than a context and code can take leaks, whether or not anybody looked before', async () => {
  const harness = await GpuHarness.open();
  const container = await harness.container(placementOf(2000), 7);
  harness.agent.began(userOf('a'), container.id);
  harness.agent.ended(userOf('a'));
  harness.unbound.add(container.id);
  harness.processes['GPU-0'] = [{ pid: 7, memoryMiB: 840 }];
  await harness.look();
  expect(harness.ended).toEqual([container.id]);
});

test('memory of a process that has ended keeps new work off until it is free', async () => {
  const harness = await GpuHarness.open();
  harness.processes['GPU-0'] = [{ pid: 99, memoryMiB: 500 }];
  harness.dead.add(99);
  const { status } = await harness.look(6);
  expect(status[0]?.health).toMatchObject({ state: 'cordoned', reasons: [expect.stringContaining('has ended')] });
  harness.processes['GPU-0'] = [];
  expect((await harness.look(6)).status[0]?.health.state).toBe('healthy');
});

test('devices of a driver that does not answer get no work until it does', async () => {
  const harness = await GpuHarness.open();
  harness.driverFails = true;
  await harness.look(2);
  expect(harness.agent.admit(placementOf(1000), userOf('a'))).toBeUndefined();
  await harness.look(2);
  expect(harness.agent.admit(placementOf(1000), userOf('b'))).toContain('does not answer');
  harness.driverFails = false;
  await harness.look();
  expect(harness.agent.admit(placementOf(1000), userOf('b'))).toBeUndefined();
});
