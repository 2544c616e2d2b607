import { systemClock } from '@gpuwhisk/common/system/clock';
import { openNvidiaDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/nvidia-driver';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import type { Nvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import { expect, test } from '@jest/globals';
import { startCudaClient } from '../gpu/cuda-client.js';
import { describeOnStandIn } from '../gpu/mps-home.js';
import { standIn, startStandIn } from '../gpu/stand-in.js';
import type { DriverHome } from './gpu-driver.js';
import { contractGpus, gpuDriverContract } from './gpu-driver.js';

describeOnStandIn('devices', () => {
  const nvml = loadNvml() as Nvml;

  async function nvidiaHome(): Promise<DriverHome> {
    const machine = await startStandIn(contractGpus.map((type) => `${type}x1`).join());
    const options = { nvml, clock: systemClock, library: standIn.nvml, simulator: machine.socket };
    const driver = await openNvidiaDriver(options);
    return {
      driver,
      startClient: (device, slice) => startCudaClient(machine, { CUDA_VISIBLE_DEVICES: slice ?? device }),
      async keepBusy({ uuid, slices: [slice], smCount }, part) {
        const client = await startCudaClient(machine, { CUDA_VISIBLE_DEVICES: slice?.uuid ?? uuid });
        // Eight of the test kernel's blocks fill an SM.
        await client.ask(`busy ${8 * Math.round(part * (slice?.smCount ?? smCount))}`);
        return client;
      },
      fault: ({ index }, fault) => machine.fault(index, fault, fault === 'xid' ? 31 : 0),
      async close() {
        await driver.close();
        await machine.close();
      },
    };
  }
  gpuDriverContract('nvidia driver on the stand-in', nvidiaHome);

  test('a machine without a driver is told so', async () => {
    const opening = openNvidiaDriver({ nvml, clock: systemClock, library: 'libnvidia-ml-absent.so.1' });
    await expect(opening).rejects.toMatchObject({ name: 'GpuDriverError', code: 12 });
  });

  test('a stand-in without its daemon is a driver that is not loaded', async () => {
    const simulator = '/nonexistent/socket';
    const opening = openNvidiaDriver({ nvml, clock: systemClock, library: standIn.nvml, simulator });
    await expect(opening).rejects.toMatchObject({ name: 'GpuDriverError', code: 9 });
  });
});
