import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Device, Share, ShareClass } from '@gpuwhisk/common/gpu';
import { until } from '@gpuwhisk/common/testing/until';
import type { ClientSettings, ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';

/** A process that was started with an enforcer's settings and has its context. */
export interface SharedClient {
  pid: number;
  /** Whether a CUDA call succeeds. */
  works(): Promise<boolean>;
  /** Asks for device memory; resolves with whether it was granted. */
  allocate(memoryMiB: number): Promise<boolean>;
  end(): Promise<void>;
}

/** A machine with a device, and an enforcer that is not opened yet. */
export interface EnforcerHome {
  enforcer: ShareEnforcer;
  device: Device;
  startClient(settings: ClientSettings): Promise<SharedClient>;
  close(): Promise<void>;
}

export const shareOf = (shareClass: ShareClass, memoryMiB = 2048): Share => ({
  shareClass,
  smRequest: shareClass / 200,
  smLimit: shareClass / 100,
  memoryMiB,
});

/** Abilities that an enforcer may lack: then the suite expects a refusal, or skips the check. */
export interface EnforcerLimits {
  /** The enforcer knows its clients, can end them, and caps their memory; default true. */
  enforces?: boolean;
  /** Clients are processes, which can ask for memory; default true. */
  processes?: boolean;
}

/** Registers the cases that every ShareEnforcer must pass. */
export function shareEnforcerContract(
  name: string,
  makeHome: () => Promise<EnforcerHome>,
  { enforces = true, processes = true }: EnforcerLimits = {},
): void {
  describe(`${name}: the ShareEnforcer contract`, () => {
    let home: EnforcerHome;
    let enforcer: ShareEnforcer;
    let device: Device;
    beforeEach(async () => {
      home = await makeHome();
      ({ enforcer, device } = home);
    });
    afterEach(() => home.close());

    const start = async (share: Share): Promise<SharedClient> =>
      home.startClient(await enforcer.settings(device, share));
    const pids = async (): Promise<number[]> => (await enforcer.clients(device.uuid)).map(({ pid }) => pid).sort();

    test('opens a device, more than once and at once', async () => {
      await Promise.all([enforcer.open(device), enforcer.open(device)]);
      await enforcer.open(device);
      expect(await enforcer.check(device.uuid)).toBeUndefined();
      expect(await pids()).toEqual([]);
    });

    test('settings lead a process to its device', async () => {
      await enforcer.open(device);
      const { env } = await enforcer.settings(device, shareOf(50));
      expect(env.CUDA_VISIBLE_DEVICES).toBe(device.uuid);
      const client = await start(shareOf(50));
      expect(await client.works()).toBe(true);
      await client.end();
    });

    test('confirms what runs under its share', async () => {
      await enforcer.open(device);
      const [one, other] = [await start(shareOf(30)), await start(shareOf(70))];
      await enforcer.confirm({ pid: one.pid, device: device.uuid });
      await enforcer.confirm({ pid: other.pid, device: device.uuid });
      await Promise.all([one.end(), other.end()]);
      expect(await enforcer.check(device.uuid)).toBeUndefined();
    });

    test('moves a share where it says that it does, and else refuses', async () => {
      await enforcer.open(device);
      const client = await start(shareOf(50));
      const moving = enforcer.adjust({ pid: client.pid, device: device.uuid }, { ...shareOf(50), smRequest: 0.1 });
      if (enforcer.adjusts) await moving;
      else await expect(moving).rejects.toMatchObject({ name: 'ShareError' });
      await client.end();
    });

    if (!enforces) return;

    test('has nothing to say of a device that is not open', async () => {
      const refusal = { name: 'ShareError' };
      await expect(enforcer.settings(device, shareOf(50))).rejects.toMatchObject(refusal);
      await expect(enforcer.clients(device.uuid)).rejects.toMatchObject(refusal);
      await expect(enforcer.check(device.uuid)).rejects.toMatchObject(refusal);
      await expect(enforcer.confirm({ pid: 1, device: device.uuid })).rejects.toMatchObject(refusal);
    });

    test('lists its clients until they end', async () => {
      await enforcer.open(device);
      const [one, other] = [await start(shareOf(30)), await start(shareOf(70))];
      expect(await pids()).toEqual([one.pid, other.pid].sort());
      await one.end();
      await until(async () => (await pids()).length === 1);
      expect(await pids()).toEqual([other.pid]);
      await other.end();
    });

    test('does not confirm a process that is no client', async () => {
      await enforcer.open(device);
      const client = await start(shareOf(30));
      await expect(enforcer.confirm({ pid: process.pid, device: device.uuid })).rejects.toMatchObject({
        name: 'ShareError',
      });
      await client.end();
    });

    test('takes the device from a client, and from no other', async () => {
      await enforcer.open(device);
      const [one, other] = [await start(shareOf(30)), await start(shareOf(30))];
      await enforcer.terminate({ pid: one.pid, device: device.uuid });
      await until(async () => !(await one.works()));
      expect(await other.works()).toBe(true);
      await expect(enforcer.terminate({ pid: process.pid, device: device.uuid })).rejects.toMatchObject({
        name: 'ShareError',
      });
      await Promise.all([one.end(), other.end()]);
    });

    if (processes) {
      test('caps the memory of a client with the error that programs expect', async () => {
        await enforcer.open(device);
        const client = await start(shareOf(30, 2048));
        expect(await client.allocate(1024)).toBe(true);
        expect(await client.allocate(1536)).toBe(false);
        expect(await client.allocate(256)).toBe(true);
        expect(await client.works()).toBe(true);
        await client.end();
      });
    }

    test('shuts a device once its clients are gone, and opens it again', async () => {
      await enforcer.shut(device.uuid);
      await enforcer.open(device);
      const client = await start(shareOf(30));
      await expect(enforcer.shut(device.uuid)).rejects.toMatchObject({ name: 'ShareError' });
      expect(await client.works()).toBe(true);
      await client.end();
      await until(async () => (await pids()).length === 0);
      await enforcer.shut(device.uuid);
      await expect(enforcer.settings(device, shareOf(50))).rejects.toMatchObject({ name: 'ShareError' });
      await enforcer.open(device);
      expect(await enforcer.check(device.uuid)).toBeUndefined();
    });

    test('is closed once, and for all its devices', async () => {
      await enforcer.open(device);
      await enforcer.close();
      await enforcer.close();
      await expect(enforcer.settings(device, shareOf(50))).rejects.toMatchObject({ name: 'ShareError' });
    });
  });
}
