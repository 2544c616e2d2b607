import { systemClock } from '@gpuwhisk/common/system/clock';
import { openNvidiaDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/nvidia-driver';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import { expect, test } from '@jest/globals';
import { standIn, startStandIn } from '../gpu/stand-in.js';
import { startCudaClient } from '../gpu/cuda-client.js';
import { contractGpus, gpuDriverContract } from './gpu-driver.js';

const nvml = loadNvml();
if (!nvml) throw new Error('native/build/nvml.node is missing: it takes a C++ compiler.');

gpuDriverContract('nvidia driver on the stand-in', async () => {
  const machine = await startStandIn(contractGpus.map((type) => `${type}x1`).join());
  const options = { nvml, clock: systemClock, library: standIn.nvml, simulator: machine.socket };
  const driver = await openNvidiaDriver(options);
  return {
    driver,
    startClient: (device, slice) => startCudaClient(machine, { CUDA_VISIBLE_DEVICES: slice ?? device }),
    fault: ({ index }, fault) => machine.fault(index, fault, fault === 'xid' ? 31 : 0),
    async close() {
      await driver.close();
      await machine.close();
    },
  };
});

test('a machine without a driver is told so', async () => {
  const opening = openNvidiaDriver({ nvml, clock: systemClock, library: 'libnvidia-ml-absent.so.1' });
  await expect(opening).rejects.toMatchObject({ name: 'GpuDriverError', code: 12 });
});

test('a stand-in without its daemon is a driver that is not loaded', async () => {
  const absent = openNvidiaDriver({
    nvml,
    clock: systemClock,
    library: standIn.nvml,
    simulator: '/nonexistent/socket',
  });
  await expect(absent).rejects.toMatchObject({ name: 'GpuDriverError', code: 9 });
});
