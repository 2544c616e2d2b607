import { createSimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import { contractGpus, gpuDriverContract } from './gpu-driver.js';

gpuDriverContract('simulated driver', async () => {
  const driver = createSimulatedDriver(contractGpus);
  let pids = 1000;
  return {
    driver,
    async startClient(device, slice) {
      const pid = ++pids;
      driver.addProcess(device, { pid, memoryMiB: 400, ...(slice !== undefined && { slice }) });
      return { pid, end: async () => driver.removeProcess(pid) };
    },
    async keepBusy({ uuid, slices: [slice] }, part) {
      const pid = ++pids;
      driver.addProcess(uuid, { pid, memoryMiB: 400, utilisation: 1, ...(slice && { slice: slice.uuid }) });
      driver.setFigures(uuid, { utilisation: 1, smActivity: part, dramActivity: 0 });
      return { pid, end: async () => driver.removeProcess(pid) };
    },
    async fault({ uuid }, fault) {
      if (fault === 'xid') driver.emit({ type: 'xid', device: uuid, code: 31 });
      else driver.setLost(uuid, fault === 'lost');
    },
    close: () => driver.close(),
  };
});
