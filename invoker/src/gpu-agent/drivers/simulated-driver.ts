import type { GpuProcess } from '@gpuwhisk/common/gpu';
import type { DeviceEvent, DeviceSample, GpuDriver } from './gpu-driver.js';
import { GpuDriverError } from './gpu-driver.js';
import { nvmlCodes } from './nvml.js';
import { SimulatedDevice } from './simulated-device.js';
import type { SimulatedType } from './simulated-models.js';

/** A GpuDriver in memory, with what a test or simulation does to its devices. Devices are named by UUID. */
export interface SimulatedDriver extends GpuDriver {
  addProcess(device: string, process: Pick<GpuProcess, 'pid' | 'memoryMiB' | 'slice' | 'utilisation'>): void;
  removeProcess(pid: number): void;
  /** Sets the figures of later samples. Samples leave out figures that the chip or its mode does not have. */
  setFigures(
    device: string,
    figures: Pick<DeviceSample, 'utilisation' | 'smActivity' | 'dramActivity' | 'temperatureC' | 'powerW'>,
  ): void;
  setClockEvents(device: string, reasons: string[]): void;
  emit(event: DeviceEvent): void;
  /** It falls off the bus, with its processes, or is back. */
  setLost(device: string, lost: boolean): void;
}

/** GPUs in memory: one of each type, in that order. Their UUIDs follow from the index. */
export function createSimulatedDriver(types: readonly SimulatedType[]): SimulatedDriver {
  const all = types.map((type, index) => new SimulatedDevice(type, index));
  const listeners = new Set<(event: DeviceEvent) => void>();
  let closed = false;

  const present = (): SimulatedDevice[] => {
    if (closed) throw new GpuDriverError('The driver has been closed.');
    return all.filter((device) => !device.lost);
  };
  const find = (uuid: string): SimulatedDevice => {
    const device = present().find((one) => one.uuid === uuid);
    if (!device) throw new GpuDriverError(`There is no device ${uuid}.`, nvmlCodes.notFound);
    return device;
  };
  const emit = (event: DeviceEvent): void => listeners.forEach((listener) => listener(event));
  const changed = (device: string): void => emit({ type: 'mig-changed', device });

  return {
    simulated: true,
    version: { driver: 'simulated', cuda: '13.0' },
    devices: async () => present().map((device) => device.describe()),
    sample: async () => present().map((device) => device.sample()),
    async watch(listener) {
      present();
      listeners.add(listener);
      return {
        async close() {
          listeners.delete(listener);
        },
      };
    },
    sliceProfiles: async (device) => find(device).profiles(),
    async setExclusive(device, exclusive) {
      find(device).setExclusive(exclusive);
    },
    async setMig(device, enabled) {
      find(device).setMig(enabled);
      changed(device);
    },
    async createSlice(device, profile, startSlot) {
      const slice = find(device).createSlice(profile, startSlot);
      changed(device);
      return slice;
    },
    async destroySlice(device, slice) {
      find(device).destroySlice(slice);
      changed(device);
    },
    async close() {
      closed = true;
    },
    addProcess: (device, process) => void find(device).processes.push({ ...process }),
    removeProcess(pid) {
      for (const { processes } of all) {
        const kept = processes.filter((process) => process.pid !== pid);
        processes.splice(0, processes.length, ...kept);
      }
    },
    setFigures(device, figures) {
      find(device).figures = { ...figures };
    },
    setClockEvents(device, reasons) {
      find(device).clockEvents = [...reasons];
    },
    emit,
    setLost(uuid, lost) {
      const device = all.find((one) => one.uuid === uuid);
      if (!device) throw new GpuDriverError(`There is no device ${uuid}.`, nvmlCodes.notFound);
      device.lost = lost;
      device.processes.length = 0;
      if (lost) emit({ type: 'lost', device: uuid });
    },
  };
}
