import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Device } from '@gpuwhisk/common/gpu';
import { cutDevice } from '@gpuwhisk/invoker/gpu-agent/geometry';
import { shareOf } from '../contract/share-enforcer.js';
import { startCudaClient } from './cuda-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';

describeOnStandIn('cutting a device anew', () => {
  let home: MpsHome;
  let device: Device;
  beforeEach(async () => {
    home = await startMpsHome();
    await home.driver.setMig(home.device.uuid, true);
    await cut([], ['3g.20gb', '2g.10gb']);
  });
  afterEach(() => home.close());

  async function cut(remove: string[], add: string[], idleWithinMs = 20_000): Promise<void> {
    const { driver, enforcer } = home;
    await cutDevice({ driver, enforcer, clock: systemClock }, home.device.uuid, { remove, add }, idleWithinMs);
    await look();
  }
  async function look(): Promise<void> {
    device = (await home.driver.devices())[0] as Device;
  }
  const profiles = (): string[] => device.slices.map(({ profile }) => profile).sort();
  const uuidOf = (wanted: string): string => device.slices.find(({ profile }) => profile === wanted)?.uuid ?? '';

  test('leaves the other slices and what runs in them', async () => {
    const kept = uuidOf('3g.20gb');
    for (const { uuid } of device.slices) await home.enforcer.open(device, uuid);
    const { env } = await home.enforcer.settings(device, shareOf(50), kept);
    const client = await startCudaClient(home.machine, env);
    await cut([uuidOf('2g.10gb')], ['1g.5gb', '1g.5gb']);
    expect(profiles()).toEqual(['1g.5gb', '1g.5gb', '3g.20gb']);
    expect(uuidOf('3g.20gb')).toBe(kept);
    expect(await client.ask('sync')).toEqual([0]);
    await client.end();
  });

  test('waits for what uses a slice', async () => {
    const used = uuidOf('2g.10gb');
    await home.enforcer.open(device, used);
    const { env } = await home.enforcer.settings(device, shareOf(50), used);
    const client = await startCudaClient(home.machine, env);
    await expect(cut([used], ['1g.5gb'], 300)).rejects.toMatchObject({ name: 'ShareError' });
    await look();
    expect(profiles()).toEqual(['2g.10gb', '3g.20gb']);
    const cutting = cut([used], ['1g.5gb']);
    await client.end();
    await cutting;
    expect(profiles()).toEqual(['1g.5gb', '3g.20gb']);
  });

  test('waits for processes outside MPS too', async () => {
    const used = uuidOf('2g.10gb');
    const client = await startCudaClient(home.machine, { CUDA_VISIBLE_DEVICES: used });
    await expect(cut([used], [], 300)).rejects.toMatchObject({ name: 'GpuDriverError', code: 19 });
    const cutting = cut([used], []);
    await client.end();
    await cutting;
    expect(profiles()).toEqual(['3g.20gb']);
  });

  test('says where there is no room', async () => {
    await expect(cut([], ['4g.20gb'])).rejects.toMatchObject({ name: 'GpuDriverError', code: 23 });
  });
});
