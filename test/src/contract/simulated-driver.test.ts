import { expect, test } from '@jest/globals';
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

test('a process of the simulated driver is on a slice that is there, or on a device that is not cut', async () => {
  const driver = createSimulatedDriver(contractGpus);
  const [first] = await driver.devices();
  const { uuid = '' } = first ?? {};
  const process = { pid: 1, memoryMiB: 400 };
  const addTo = (slice?: string) => (): void => driver.addProcess(uuid, { ...process, ...(slice && { slice }) });
  expect(addTo('MIG-gone')).toThrow('There is no MIG-gone.');
  await driver.setMig(uuid, true);
  // It would outlast every cut, since it keeps no slice in use.
  expect(addTo()).toThrow('There is no device that is not cut.');
  const { uuid: slice } = await driver.createSlice(uuid, '2g.10gb');
  addTo(slice)();
  await expect(driver.destroySlice(uuid, slice)).rejects.toMatchObject({ code: 19 });
  await expect(driver.setMig(uuid, false)).rejects.toMatchObject({ code: 19 });
  driver.removeProcess(1);
  await driver.destroySlice(uuid, slice);
  expect(addTo(slice)).toThrow(`There is no ${slice}.`);
  await driver.close();
});
