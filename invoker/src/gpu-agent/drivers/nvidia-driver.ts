import type { Device } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { GpuDriverError } from './gpu-driver.js';
import type { GpuDriver } from './gpu-driver.js';
import { nvmlCodes } from './nvml.js';
import type { Nvml, NvmlDevice } from './nvml.js';

interface NvidiaDriverOptions {
  nvml: Nvml;
  clock: Clock;
  /** Default: the system's `libnvidia-ml.so.1`. */
  library?: string;
  /** Socket of the stand-in's daemon; absent for a real driver. */
  simulator?: string;
  /** Settings that may be changed; those of a simulated device always may. Default: none. */
  manage?: { mps: boolean; mig: boolean };
  /** Time limit of a call, ms; a failing driver can take minutes. Default 20,000. */
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

/** The GPUs of this machine by NVML, or those of the stand-in. Rejects with GpuDriverError, also without a driver. */
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
    cuts: simulated || options.manage?.mig === true,
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

/** Calls that may wait for earlier ones; usually there is one a second, and operators' requests. */
const maxWaiting = 64;

/**
 * Runs calls of a driver one after another, since each holds a thread. A call without an answer after `timeoutMs` is
 * rejected with GpuDriverError. The call's thread stays blocked, so later calls wait for it and reach their own time limits.
 * With 64 calls waiting the next one is refused.
 */
function oneAtATime(clock: Clock, timeoutMs: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (work) => {
    if (waiting > maxWaiting)
      return Promise.reject(new GpuDriverError('The driver does not answer; too many calls wait.'));
    waiting++;
    let givenUp = false;
    const answer = last.then(() => {
      if (givenUp) throw new GpuDriverError('The call was given up before it began.');
      return work();
    });
    const settle = (): void => {
      waiting--;
    };
    last = answer.then(settle, settle);
    return new Promise((resolve, reject) => {
      const timer = clock.setBackgroundTimer(timeoutMs, () => {
        givenUp = true;
        reject(new GpuDriverError(`The driver did not answer within ${timeoutMs} ms.`));
      });
      answer.then(resolve, reject).finally(() => timer.cancel());
    });
  };
}

/** Patterns of the vendor's names with the short names that keys and tables use. The first match counts. */
const models: [RegExp, string][] = [
  [/\bV100\b.*\b32 ?GB/i, 'v100-32'],
  [/\bA100\b.*\b40 ?GB/i, 'a100-40'],
  [/\bA100\b.*\b80 ?GB/i, 'a100-80'],
  [/\bH100\b/i, 'h100'],
  [/\bH200\b/i, 'h200'],
  [/\bB200\b/i, 'b200'],
  [/\bRTX 3090\b/i, 'rtx3090'],
];

/** The short name of a model from the vendor's name: `NVIDIA A100-SXM4-40GB` is `a100-40`, `NVIDIA L4` is `l4`. */
export function deviceType(name: string): string {
  const known = models.find(([pattern]) => pattern.test(name));
  if (known) return known[1];
  const words = name.replace(/^(NVIDIA|Tesla|GeForce|\s)+/i, '').replace(/\(.*\)/, '');
  return words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}
