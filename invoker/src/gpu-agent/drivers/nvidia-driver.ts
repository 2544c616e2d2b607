import type { Device } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { deviceType } from './device-type.js';
import type { GpuDriver } from './gpu-driver.js';
import { GpuDriverError } from './gpu-driver.js';
import type { Nvml, NvmlDevice } from './nvml.js';
import { nvmlCodes } from './nvml.js';
import { oneAtATime } from './one-at-a-time.js';

export interface NvidiaDriverOptions {
  nvml: Nvml;
  clock: Clock;
  /** Default: the system's `libnvidia-ml.so.1`. */
  library?: string;
  /** For the stand-in: the socket of its daemon. */
  simulator?: string;
  /** What may be changed; a simulated device always is. Default: nothing. */
  manage?: { mps: boolean; mig: boolean };
  /** After which a call is given up. A driver in trouble can take minutes. Default 20,000. */
  timeoutMs?: number;
}

const asDriverError = (error: unknown): GpuDriverError => {
  if (error instanceof GpuDriverError) return error;
  const { message, code } = error as Error & { code?: unknown };
  return new GpuDriverError(message, typeof code === 'number' ? code : undefined);
};

function toDevice({ mig, exclusive, ...device }: NvmlDevice, simulated: boolean): Device {
  const mode = mig ? 'mig' : exclusive ? 'exclusive' : 'timeslice';
  return { ...device, type: deviceType(device.name), mode, simulated };
}

/** The GPUs of this machine by NVML, or those of the stand-in. Rejects with GpuDriverError, also where there is no driver. */
export async function openNvidiaDriver(options: NvidiaDriverOptions): Promise<GpuDriver> {
  const { nvml, clock, library = 'libnvidia-ml.so.1', simulator = '', timeoutMs = 20_000 } = options;
  const queue = oneAtATime(clock, timeoutMs);
  const call = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await queue(work);
    } catch (error) {
      throw asDriverError(error);
    }
  };
  const { session, driver, cuda } = await call(() => nvml.open(library, simulator));
  const simulated = driver.includes('simulated');

  const require = (what: 'mps' | 'mig'): void => {
    if (simulated || options.manage?.[what]) return;
    throw new GpuDriverError(`gpu.manage.${what} is off: nothing is changed on this machine.`, nvmlCodes.noPermission);
  };

  return {
    simulated,
    version: { driver, cuda },
    devices: async () => (await call(() => nvml.devices(session))).map((device) => toDevice(device, simulated)),
    sample: () => call(() => nvml.sample(session)),
    async watch(listener) {
      const watch = await call(() => nvml.watch(session, listener));
      return { close: () => call(() => nvml.unwatch(session, watch)) };
    },
    sliceProfiles: (device) => call(() => nvml.profiles(session, device)),
    async setExclusive(device, exclusive) {
      require('mps');
      await call(() => nvml.setExclusive(session, device, exclusive));
    },
    async setMig(device, enabled) {
      require('mig');
      await call(() => nvml.setMig(session, device, enabled));
    },
    async createSlice(device, profile, startSlot) {
      require('mig');
      return call(() => nvml.createSlice(session, device, profile, startSlot));
    },
    async destroySlice(device, slice) {
      require('mig');
      await call(() => nvml.destroySlice(session, device, slice));
    },
    close: () => call(() => nvml.close(session)),
  };
}
