import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { openNvidiaDriver, deviceType } from './nvidia-driver.js';
import type { Nvml, NvmlDevice } from './nvml.js';

const device: NvmlDevice = {
  uuid: 'GPU-1',
  index: 0,
  name: 'NVIDIA A100-SXM4-80GB',
  smCount: 108,
  memoryMiB: 81_920,
  mig: false,
  exclusive: true,
  slices: [],
};

/** A binding that reports a real driver, with the list of changes that were requested from it. */
function realNvml(more: Partial<Nvml> = {}): { nvml: Nvml; changes: string[] } {
  const changes: string[] = [];
  const change = (what: string) => async () => void changes.push(what);
  const nvml: Nvml = {
    open: async () => ({ session: {}, driver: '580.65.06', cuda: '13.0' }),
    devices: async () => [device],
    sample: async () => [],
    profiles: async () => [],
    setMig: change('MIG'),
    setExclusive: change('exclusive'),
    createSlice: async () => {
      changes.push('create');
      return { uuid: 'MIG-1', profile: '1g.10gb', startSlot: 0, slots: 1, smCount: 14, memoryMiB: 9728 };
    },
    destroySlice: change('destroy'),
    watch: async () => ({}),
    unwatch: async () => undefined,
    close: async () => undefined,
    ...more,
  };
  return { nvml, changes };
}

describe('a real driver', () => {
  const refusal = (setting: string) => ({ name: 'GpuDriverError', code: 4, message: expect.stringContaining(setting) });

  test('is known by its version, and its devices by their mode', async () => {
    const driver = await openNvidiaDriver({ nvml: realNvml().nvml, clock: systemClock });
    expect(driver).toMatchObject({ simulated: false, version: { driver: '580.65.06', cuda: '13.0' } });
    const { uuid, index, name, smCount, memoryMiB, slices } = device;
    const told = { uuid, index, name, smCount, memoryMiB, slices };
    expect(await driver.devices()).toEqual([{ ...told, type: 'a100-80', mode: 'exclusive', simulated: false }]);
  });

  test('is changed only where the configuration allows it', async () => {
    const { nvml, changes } = realNvml();
    const readOnly = await openNvidiaDriver({ nvml, clock: systemClock });
    await expect(readOnly.setMig('GPU-1', true)).rejects.toMatchObject(refusal('gpu.manage.mig'));
    await expect(readOnly.createSlice('GPU-1', '1g.10gb')).rejects.toMatchObject(refusal('gpu.manage.mig'));
    await expect(readOnly.destroySlice('GPU-1', 'MIG-1')).rejects.toMatchObject(refusal('gpu.manage.mig'));
    await expect(readOnly.setExclusive('GPU-1', true)).rejects.toMatchObject(refusal('gpu.manage.mps'));
    expect(changes).toEqual([]);

    const forMps = await openNvidiaDriver({ nvml, clock: systemClock, manage: { mps: true, mig: false } });
    await forMps.setExclusive('GPU-1', true);
    await expect(forMps.setMig('GPU-1', true)).rejects.toMatchObject(refusal('gpu.manage.mig'));
    const forMig = await openNvidiaDriver({ nvml, clock: systemClock, manage: { mps: false, mig: true } });
    await forMig.setMig('GPU-1', true);
    await forMig.createSlice('GPU-1', '1g.10gb');
    await forMig.destroySlice('GPU-1', 'MIG-1');
    expect(changes).toEqual(['exclusive', 'MIG', 'create', 'destroy']);
  });
});

/** A clock whose timers fire when the test calls `passTime`. */
function clockOfTimers(): { clock: Clock; passTime: () => void } {
  const timers = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    setBackgroundTimer(_delayMs, run) {
      timers.add(run);
      return { cancel: () => void timers.delete(run) };
    },
  };
  const passTime = (): void => {
    const due = [...timers];
    timers.clear();
    due.forEach((run) => run());
  };
  return { clock, passTime };
}

describe('a driver that hangs', () => {
  const gaveUp = { name: 'GpuDriverError', message: expect.stringContaining('within 50 ms') };

  test('is given up, and so is what waits behind it', async () => {
    let ended = 0;
    const { nvml } = realNvml({
      sample: () => new Promise(() => undefined),
      devices: async () => {
        ended++;
        return [device];
      },
    });
    const { clock, passTime } = clockOfTimers();
    const driver = await openNvidiaDriver({ nvml, clock, timeoutMs: 50 });
    const calls = [driver.sample(), driver.devices()];
    passTime();
    for (const call of calls) await expect(call).rejects.toMatchObject(gaveUp);
    expect(ended).toBe(0);
  });

  test('serves again once it answers, and does not do late what was given up', async () => {
    let answer: () => void = () => undefined;
    const { nvml, changes } = realNvml({
      sample: () => new Promise((resolve) => (answer = () => resolve([]))),
    });
    const manage = { mps: true, mig: true };
    const { clock, passTime } = clockOfTimers();
    const driver = await openNvidiaDriver({ nvml, clock, timeoutMs: 50, manage });
    const calls = [driver.sample(), driver.setMig('GPU-1', true)];
    await new Promise(setImmediate);
    passTime();
    for (const call of calls) await expect(call).rejects.toMatchObject(gaveUp);
    answer();
    expect(await driver.devices()).toHaveLength(1);
    expect(changes).toEqual([]);
  });

  test('is not asked without end', async () => {
    const { nvml } = realNvml({ sample: () => new Promise(() => undefined) });
    const { clock, passTime } = clockOfTimers();
    const driver = await openNvidiaDriver({ nvml, clock, timeoutMs: 50 });
    const calls = Promise.allSettled(Array.from({ length: 100 }, () => driver.sample()));
    passTime();
    const answers = await calls;
    const reasons = answers.map((one) => (one.status === 'rejected' ? String(one.reason) : 'answered'));
    expect(reasons.filter((reason) => reason.includes('too many calls'))).toHaveLength(35);
    expect(reasons.filter((reason) => reason.includes('within 50 ms'))).toHaveLength(65);
  });
});

test.each([
  ['NVIDIA A100-SXM4-40GB', 'a100-40'],
  ['NVIDIA A100 80GB PCIe', 'a100-80'],
  ['NVIDIA A100-SXM4-40GB (simulated)', 'a100-40'],
  ['NVIDIA H100 80GB HBM3', 'h100'],
  ['NVIDIA H200', 'h200'],
  ['NVIDIA GeForce RTX 3090', 'rtx3090'],
  ['NVIDIA GeForce RTX 4090', 'rtx-4090'],
  ['Tesla V100-SXM2-16GB', 'v100-sxm2-16gb'],
  ['Tesla V100-SXM2-32GB (simulated)', 'v100-32'],
  ['NVIDIA L4', 'l4'],
])('%s is called %s', (name, type) => {
  expect(deviceType(name)).toBe(type);
});
