import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Device } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import type { DeviceEvent, DeviceSample, GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { inOrderOfCreation } from '@gpuwhisk/invoker/gpu-agent/geometry';

/** A process with a context on a device. */
export interface GpuClient {
  pid: number;
  end(): Promise<void>;
}

/** A machine with two A100 of 40 GB and an H100. */
export interface DriverHome {
  driver: GpuDriver;
  /** Starts a process on a device or slice; resolves once the process has its context. */
  startClient(device: string, slice?: string): Promise<GpuClient>;
  /** Starts a process whose one kernel runs for minutes on a fraction of the SMs of a device or of its first slice. */
  keepBusy(device: Device, part: number): Promise<GpuClient>;
  fault(device: Device, fault: 'lost' | 'recover' | 'xid'): Promise<void>;
  close(): Promise<void>;
}

export const contractGpus = ['a100-40', 'a100-40', 'h100'] as const;

/** Registers the cases that every GpuDriver must pass. */
export function gpuDriverContract(name: string, makeHome: () => Promise<DriverHome>): void {
  describe(`${name}: the GpuDriver contract`, () => {
    let home: DriverHome;
    let driver: GpuDriver;
    let first: Device;
    beforeEach(async () => {
      home = await makeHome();
      driver = home.driver;
      first = (await driver.devices())[0] as Device;
    });
    afterEach(() => home.close());

    const device = async (uuid: string): Promise<Device> =>
      (await driver.devices()).find((one) => one.uuid === uuid) as Device;
    const sampleOf = async (uuid: string) => (await driver.sample()).find((one) => one.uuid === uuid);

    test('lists devices in the order of their indices', async () => {
      const devices = await driver.devices();
      expect(devices.map(({ type, index }) => ({ type, index }))).toEqual(
        contractGpus.map((type, index) => ({ type, index })),
      );
      expect(new Set(devices.map(({ uuid }) => uuid)).size).toBe(contractGpus.length);
      expect(first).toMatchObject({ name: 'NVIDIA A100-SXM4-40GB (simulated)', smCount: 108, memoryMiB: 40 * 1024 });
      expect(first).toMatchObject({ mode: 'timeslice', slices: [], simulated: true });
      expect(first.uuid).toMatch(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      expect(driver.simulated).toBe(true);
      expect(driver.version.cuda).toMatch(/^\d+\.\d+$/);
    });

    test('samples all devices', async () => {
      const samples = await driver.sample();
      expect(samples).toHaveLength(contractGpus.length);
      expect(samples[0]).toMatchObject({ uuid: first.uuid, usedMemoryMiB: 0, processes: [], clockEvents: [] });
      expect(samples[0]?.utilisation).toBe(0);
    });

    test('names the processes of a device and the memory that they hold', async () => {
      const client = await home.startClient(first.uuid);
      const sample = await sampleOf(first.uuid);
      expect(sample?.processes.map(({ pid }) => pid)).toEqual([client.pid]);
      const memoryMiB = sample?.processes[0]?.memoryMiB ?? 0;
      expect(memoryMiB).toBeGreaterThan(0);
      expect(sample?.usedMemoryMiB).toBe(memoryMiB);
      await client.end();
      await until(async () => (await sampleOf(first.uuid))?.usedMemoryMiB === 0);
      expect((await sampleOf(first.uuid))?.processes).toEqual([]);
    });

    describe('a process that is busy all the time on a tenth of the SMs', () => {
      const busySample = async ({ uuid, type }: Device): Promise<DeviceSample> => {
        let sample: DeviceSample | undefined;
        await until(async () => {
          sample = await sampleOf(uuid);
          // Activity covers the time since the previous sample, and is absent if that was less than 100 ms ago.
          const isActive = type !== 'h100' || (sample?.smActivity ?? 0) > 0.08;
          return sample?.utilisation === 1 && sample.processes[0]?.utilisation === 1 && isActive;
        });
        return sample!;
      };

      test('is busy and not full: utilisation counts time, activity counts SMs where the chip has GPM', async () => {
        const [, , hopper] = await driver.devices();
        const client = await home.keepBusy(hopper!, 0.1);
        const sample = await busySample(hopper!);
        expect(sample.processes).toMatchObject([{ pid: client.pid, utilisation: 1 }]);
        expect(sample.smActivity).toBeCloseTo(0.1, 1);
        expect(sample.smActivity).toBeLessThan(0.12);
        expect(sample.dramActivity).toBe(0);
        await client.end();
      });

      test('has no activity on a chip without GPM', async () => {
        const client = await home.keepBusy(first, 0.1);
        const sample = await busySample(first);
        expect([sample.smActivity, sample.dramActivity]).toEqual([undefined, undefined]);
        await client.end();
      });

      test('has no figures at all in a slice, and activity is back once MIG is off', async () => {
        const [, , hopper] = await driver.devices();
        const { uuid } = hopper!;
        await driver.setMig(uuid, true);
        const slice = await driver.createSlice(uuid, '3g.40gb');
        const client = await home.keepBusy(await device(uuid), 0.1);
        let sample: DeviceSample | undefined;
        for (let look = 0; look < 3; look += 1) {
          sample = await sampleOf(uuid);
          expect(sample).not.toHaveProperty('utilisation');
          expect(sample).not.toHaveProperty('smActivity');
          expect(sample).not.toHaveProperty('dramActivity');
          await new Promise((done) => setTimeout(done, 120));
        }
        expect(sample?.processes).toMatchObject([{ pid: client.pid, slice: slice.uuid }]);
        expect(sample?.processes[0]).not.toHaveProperty('utilisation');
        await client.end();
        await until(() => driver.setMig(uuid, false).then(always, never));
        const whole = await home.keepBusy(await device(uuid), 0.1);
        expect((await busySample(hopper!)).smActivity).toBeLessThan(0.12);
        await whole.end();
      });
    });

    test('lets one process in, or many', async () => {
      await driver.setExclusive(first.uuid, true);
      expect((await device(first.uuid)).mode).toBe('exclusive');
      await driver.setExclusive(first.uuid, false);
      expect((await device(first.uuid)).mode).toBe('timeslice');
    });

    test('refuses what there is not', async () => {
      const absent = 'GPU-00000000-0000-0000-0000-00000000ffff';
      await expect(driver.setExclusive(absent, true)).rejects.toMatchObject({ name: 'GpuDriverError', code: 6 });
      await expect(driver.sliceProfiles(absent)).rejects.toMatchObject({ name: 'GpuDriverError' });
      await expect(driver.createSlice(first.uuid, '3g.20gb')).rejects.toThrow(/MIG is off/);
      expect(await driver.sliceProfiles(first.uuid)).toEqual([]);
      await driver.setMig(first.uuid, true);
      await expect(driver.createSlice(first.uuid, '5g.25gb')).rejects.toMatchObject({ code: 6 });
      await expect(driver.createSlice(first.uuid, '3g.20gb', 2)).rejects.toMatchObject({ name: 'GpuDriverError' });
      await expect(driver.destroySlice(first.uuid, 'MIG-none')).rejects.toMatchObject({ code: 6 });
    });

    describe('MIG', () => {
      test('has the profiles of the model', async () => {
        await driver.setMig(first.uuid, true);
        expect((await device(first.uuid)).mode).toBe('mig');
        const profiles = await driver.sliceProfiles(first.uuid);
        const named = (wanted: string) => profiles.find(({ name: found }) => found === wanted);
        expect(named('1g.5gb')).toEqual({
          name: '1g.5gb',
          slots: 1,
          smCount: 14,
          memoryMiB: 4864,
          starts: [0, 1, 2, 3, 4, 5, 6],
          remaining: 7,
        });
        expect(named('3g.20gb')).toMatchObject({ slots: 4, smCount: 42, starts: [0, 4], remaining: 2 });
        expect(named('4g.20gb')).toMatchObject({ slots: 4, smCount: 56, starts: [0], remaining: 1 });
        expect(named('7g.40gb')).toMatchObject({ slots: 8, smCount: 98, memoryMiB: 40_192, remaining: 1 });
      });

      test('cuts a device, and takes a slice back', async () => {
        await driver.setMig(first.uuid, true);
        const three = await driver.createSlice(first.uuid, '3g.20gb', 4);
        expect(three).toMatchObject({ profile: '3g.20gb', startSlot: 4, slots: 4, smCount: 42, memoryMiB: 19_968 });
        expect(three.uuid).toMatch(/^MIG-/);
        const four = await driver.createSlice(first.uuid, '4g.20gb');
        expect(four).toMatchObject({ profile: '4g.20gb', startSlot: 0 });
        expect((await device(first.uuid)).slices.map(({ uuid }) => uuid).sort()).toEqual(
          [three.uuid, four.uuid].sort(),
        );
        const left = await driver.sliceProfiles(first.uuid);
        expect(left.map(({ remaining }) => remaining)).toEqual(left.map(() => 0));
        await expect(driver.createSlice(first.uuid, '1g.5gb')).rejects.toMatchObject({
          name: 'GpuDriverError',
          code: 23,
        });
        await driver.destroySlice(first.uuid, four.uuid);
        expect((await device(first.uuid)).slices).toEqual([three]);
        expect((await driver.sliceProfiles(first.uuid)).find(({ name: found }) => found === '2g.10gb')?.remaining).toBe(
          2,
        );
      });

      test('makes a mixed list in the order of creation', async () => {
        await driver.setMig(first.uuid, true);
        const wanted = ['1g.5gb', '2g.10gb', '3g.20gb', '1g.5gb'];
        for (const profile of inOrderOfCreation(wanted)) await driver.createSlice(first.uuid, profile);
        const made = (await device(first.uuid)).slices.map(({ profile }) => profile);
        expect(made.sort()).toEqual([...wanted].sort());
      });

      test('turning it off takes the slices, turning it on again does not', async () => {
        await driver.setMig(first.uuid, true);
        const made = await driver.createSlice(first.uuid, '2g.10gb');
        await driver.setMig(first.uuid, true);
        expect((await device(first.uuid)).slices).toEqual([made]);
        await driver.setMig(first.uuid, false);
        expect(await device(first.uuid)).toMatchObject({ mode: 'timeslice', slices: [] });
      });

      test('leaves alone what processes use', async () => {
        const onDevice = await home.startClient(first.uuid);
        await expect(driver.setMig(first.uuid, true)).rejects.toMatchObject({ name: 'GpuDriverError', code: 19 });
        await onDevice.end();
        await until(() => driver.setMig(first.uuid, true).then(always, never));
        const used = await driver.createSlice(first.uuid, '2g.10gb');
        const idle = await driver.createSlice(first.uuid, '2g.10gb');
        const client = await home.startClient(first.uuid, used.uuid);
        const [process] = (await sampleOf(first.uuid))?.processes ?? [];
        expect(process).toMatchObject({ pid: client.pid, slice: used.uuid });
        await expect(driver.destroySlice(first.uuid, used.uuid)).rejects.toMatchObject({ code: 19 });
        await driver.destroySlice(first.uuid, idle.uuid);
        expect((await device(first.uuid)).slices.map(({ uuid }) => uuid)).toEqual([used.uuid]);
        await client.end();
        await until(() => driver.destroySlice(first.uuid, used.uuid).then(always, never));
      });
    });

    describe('events', () => {
      test('are told until the watch is closed', async () => {
        const events: DeviceEvent[] = [];
        const watch = await driver.watch((event) => events.push(event));
        await home.fault(first, 'xid');
        await until(() => events.length > 0);
        expect(events).toEqual([{ type: 'xid', device: first.uuid, code: 31 }]);
        await driver.setMig(first.uuid, true);
        await until(() => events.length > 1);
        expect(events[1]).toEqual({ type: 'mig-changed', device: first.uuid });
        await watch.close();
        await driver.setMig(first.uuid, false);
        expect(events).toHaveLength(2);
      });

      test('a lost device is told, and listed no more until it is back', async () => {
        const events: DeviceEvent[] = [];
        const watch = await driver.watch((event) => events.push(event));
        await home.fault(first, 'lost');
        await until(() => events.some(({ type }) => type === 'lost'));
        expect(events.find(({ type }) => type === 'lost')).toEqual({ type: 'lost', device: first.uuid });
        expect((await driver.devices()).map(({ index }) => index)).toEqual([1, 2]);
        expect(await driver.sample()).toHaveLength(2);
        await expect(driver.setExclusive(first.uuid, true)).rejects.toMatchObject({ name: 'GpuDriverError' });
        await home.fault(first, 'recover');
        expect(await driver.devices()).toHaveLength(3);
        expect(await driver.sample()).toHaveLength(3);
        await until(async () => {
          await home.fault(first, 'xid');
          return events.some((event) => event.type === 'xid' && event.code === 31);
        });
        await watch.close();
      });
    });

    test('does nothing once it is closed', async () => {
      await driver.close();
      await expect(driver.devices()).rejects.toMatchObject({ name: 'GpuDriverError' });
      await expect(driver.sample()).rejects.toMatchObject({ name: 'GpuDriverError' });
    });
  });
}

const always = (): boolean => true;
const never = (): boolean => false;
