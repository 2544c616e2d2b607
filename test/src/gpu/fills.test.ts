// A controller learns the fill of functions from a node's driver and enforcer.
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ActivityProfiler } from '@gpuwhisk/controller/gpu/learning/activity-profiler';
import type { Device, NodeStatus, Resident, ShareClass } from '@gpuwhisk/common/gpu';
import { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import { fillingShare } from '@gpuwhisk/gpu/stages/share/share';
import { workloadOf } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { deviceStatuses } from '@gpuwhisk/invoker/gpu-agent/sampler';
import type { GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { createSimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import { createTokensEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens-enforcer';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { shareOf } from '../contract/share-enforcer.js';
import { startCudaClient } from './cuda-client.js';
import { startDriverClient } from './driver-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';

const version = '0.0.1';
const action = '/guest/tenth';

let profiles: FunctionProfiles;
let activity: ActivityProfiler;
beforeEach(() => {
  profiles = new FunctionProfiles();
  activity = new ActivityProfiler(profiles);
  profiles.of({ function: action, version, batch: 1, arrivedAt: 1 });
});

/** Takes one sample of a device with one process of a container, as an agent does; the controller learns from it. */
async function look(
  driver: GpuDriver,
  device: Device,
  { pid, shareClass }: { pid: number; shareClass: ShareClass },
  more: Partial<Resident> = {},
): Promise<NodeStatus> {
  const at = performance.now();
  const samples = (await driver.sample()).filter(({ uuid }) => uuid === device.uuid);
  const status = deviceStatuses(samples, {
    ...{ devices: [device], at, contextMiB: () => undefined, healthOf: () => ({ state: 'healthy', reasons: [] }) },
    containerOf: (one) => (one === pid ? `c-${pid}` : undefined),
  });
  const resident = {
    ...{ container: `c-${pid}`, action, device: device.uuid, share: shareOf(shareClass), memoryMiB: 400 },
    ...{ activations: [], ...more },
  };
  const node = { invoker: 'invoker0', version: 1, at, devices: [device], status, residents: [resident] };
  activity.observe(node);
  return node;
}

const known = (): unknown => {
  const [{ features, fillSource } = {}] = profiles.all();
  return [features?.smUtil, fillSource];
};
/** The class that a policy would give the function. */
const filled = (): number => {
  const { featureRecord } = profiles.of({ function: action, version, batch: 1, arrivedAt: 1 });
  const features = workloadOf(featureRecord);
  return fillingShare({ ...(features !== undefined && { features }) } as Parameters<typeof fillingShare>[0]);
};

describe('a function that is busy all the time on a tenth of the SMs', () => {
  const simulated = async (type: 'h100' | 'a100-40'): Promise<{ driver: GpuDriver; device: Device }> => {
    const driver = createSimulatedDriver([type]);
    const [device] = await driver.devices();
    driver.addProcess(device!.uuid, { pid: 1, memoryMiB: 400, utilisation: 1 });
    driver.setFigures(device!.uuid, { utilisation: 1, smActivity: 0.1, dramActivity: 0.05 });
    return { driver, device: { ...device!, mode: 'mps' } };
  };

  test('fills a tenth where the chip tells it', async () => {
    const { driver, device } = await simulated('h100');
    const { status } = await look(driver, device, { pid: 1, shareClass: 100 });
    expect(status[0]).toMatchObject({ utilisation: 1, processes: [{ utilisation: 1 }] });
    expect([known(), filled()]).toEqual([[0.1, 'gpm'], 0.1]);
  });

  test('has no fill where nothing tells it, and is given all', async () => {
    const { driver, device } = await simulated('a100-40');
    const { status } = await look(driver, device, { pid: 1, shareClass: 100 });
    expect(status[0]).toMatchObject({ utilisation: 1, processes: [{ utilisation: 1 }] });
    expect([known(), filled()]).toEqual([[undefined, undefined], 1]);
  });
});

describeOnStandIn('on the stand-in, a function that is busy all the time on a tenth of the SMs', () => {
  let home: MpsHome;
  let tokens: ShareEnforcer | undefined;
  const start = async (gpus: string): Promise<Device> => {
    home = await startMpsHome(gpus);
    return { ...home.device, mode: 'mps' };
  };
  afterEach(async () => {
    await tokens?.close();
    tokens = undefined;
    await home.close();
  });

  test('fills a tenth by SM activity, from Hopper on', async () => {
    const device = await start('h100x1');
    const client = await startCudaClient(home.machine, { CUDA_VISIBLE_DEVICES: device.uuid });
    await client.ask(`busy ${8 * 13}`);
    for (let one = 0; one < 15; one += 1) {
      await look(home.driver, device, { pid: client.pid, shareClass: 100 });
      await new Promise((done) => setTimeout(done, 150));
    }
    const [part, source] = known() as [number, string];
    expect(source).toBe('gpm');
    expect(part).toBeCloseTo(13 / 132, 2);
    expect(profiles.all()[0]?.features).not.toHaveProperty('l2Util');
    await client.end();
  }, 60_000);

  test('fills a tenth by its launches at two classes, before Hopper', async () => {
    const device = await start('a100-40x1');
    tokens = createTokensEnforcer({ folder: join(home.machine.folder, 'tokens'), under: home.enforcer });
    await tokens.open(device);
    for (const shareClass of [100, 10] as const) {
      const { env } = await tokens.settings(device, shareOf(shareClass, 4096));
      const client = startDriverClient(home.machine.socket, env);
      await client.tell('context');
      let ended = false;
      // Kernels of 80 blocks fill ten of the 108 SMs, for 2 ms each.
      const running = (async () => {
        while (!ended) await client.tell('run 50 80 2000000 0');
      })();
      for (let one = 0; one < 9; one += 1) {
        await new Promise((done) => setTimeout(done, 600));
        const launches = await tokens.launches!({ pid: client.pid, device: device.uuid });
        await look(home.driver, device, { pid: client.pid, shareClass }, { ...(launches && { launches }) });
      }
      ended = true;
      await running;
      await client.end();
      expect(profiles.all()[0]?.batches[0]?.launchRates?.at(-1)?.share).toBe(shareClass);
    }
    const [part, source] = known() as [number, string];
    expect(source).toBe('launches');
    expect(part).toBeGreaterThan(0.09);
    expect(part).toBeLessThan(0.12);
  }, 60_000);
});
