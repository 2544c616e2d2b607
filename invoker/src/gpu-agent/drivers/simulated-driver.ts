import type { GpuProcess, Device, Slice } from '@gpuwhisk/common/gpu';
import { computeSlices, computeSlicesOf, memorySlots, migProfiles } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { MigProfile } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import { GpuDriverError } from './gpu-driver.js';
import type { DeviceEvent, DeviceSample, GpuDriver, SliceProfile } from './gpu-driver.js';
import { nvmlCodes } from './nvml.js';

/** A GpuDriver in memory, with methods by which tests and simulations change its devices. Devices are named by UUID. */
export interface SimulatedDriver extends GpuDriver {
  /** Throws GpuDriverError for a slice that is not there, and for a whole device that is cut. */
  addProcess(device: string, process: Pick<GpuProcess, 'pid' | 'memoryMiB' | 'slice' | 'utilisation'>): void;
  removeProcess(pid: number): void;
  /** Sets the figures of later samples. Samples leave out figures that the chip or its mode lacks. */
  setFigures(
    device: string,
    figures: Pick<DeviceSample, 'utilisation' | 'smActivity' | 'dramActivity' | 'temperatureC' | 'powerW'>,
  ): void;
  setClockEvents(device: string, reasons: string[]): void;
  emit(event: DeviceEvent): void;
  /** Removes a device from the bus with its processes, or restores the device. */
  setLost(device: string, lost: boolean): void;
}

/** GPUs in memory, one for each entry of `types` in that order. Their UUIDs follow from the index. */
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
    cuts: true,
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
    addProcess: (device, process) => find(device).addProcess(process),
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

type Process = Pick<GpuProcess, 'pid' | 'memoryMiB' | 'slice' | 'utilisation'>;
type Figures = Pick<DeviceSample, 'utilisation' | 'smActivity' | 'dramActivity' | 'temperatureC' | 'powerW'>;

/** One GPU in memory. */
class SimulatedDevice {
  readonly processes: Process[] = [];
  figures: Figures = { utilisation: 0, temperatureC: 30, powerW: 50 };
  clockEvents: string[] = [];
  lost = false;
  private readonly model: SimulatedModel;
  private mig = false;
  private exclusive = false;
  private slices: Slice[] = [];
  private made = 0;

  constructor(
    readonly type: SimulatedType,
    readonly index: number,
  ) {
    this.model = simulatedModels[type];
  }

  get uuid(): string {
    return `GPU-00000000-0000-0000-0000-${String(this.index).padStart(12, '0')}`;
  }

  describe(): Device {
    const { name, smCount, memoryMiB } = this.model;
    const mode = this.mig ? 'mig' : this.exclusive ? 'exclusive' : 'timeslice';
    const slices = this.slices.map((slice) => ({ ...slice }));
    return {
      uuid: this.uuid,
      index: this.index,
      name,
      type: this.type,
      smCount,
      memoryMiB,
      mode,
      slices,
      simulated: true,
    };
  }

  sample(): DeviceSample {
    const usedMemoryMiB = this.processes.reduce((sum, process) => sum + process.memoryMiB, 0);
    const figures = { ...this.figures };
    if (this.mig) delete figures.utilisation;
    if (this.mig || !this.model.gpm) {
      delete figures.smActivity;
      delete figures.dramActivity;
    }
    const processes = this.processes.map(({ utilisation, ...process }) => ({
      ...process,
      ...(!this.mig && utilisation !== undefined && { utilisation }),
    }));
    return { uuid: this.uuid, usedMemoryMiB, ...figures, clockEvents: [...this.clockEvents], processes };
  }

  profiles(): SliceProfile[] {
    if (!this.mig) return [];
    return this.model.profiles.map((profile) => ({
      ...profile,
      starts: [...profile.starts],
      remaining: this.remaining(profile),
    }));
  }

  addProcess(process: Process): void {
    const { slice } = process;
    const isThere = this.mig ? this.slices.some(({ uuid }) => uuid === slice) : slice === undefined;
    if (!isThere) throw new GpuDriverError(`There is no ${slice ?? 'device that is not cut'}.`, nvmlCodes.notFound);
    this.processes.push({ ...process });
  }

  setExclusive(exclusive: boolean): void {
    this.exclusive = exclusive;
  }

  setMig(enabled: boolean): void {
    if (this.model.profiles.length === 0) throw new GpuDriverError(`${this.model.name} cannot be cut.`);
    if (enabled === this.mig) return;
    if (this.processes.length > 0) throw new GpuDriverError('Processes use the device.', nvmlCodes.inUse);
    this.mig = enabled;
    this.slices = [];
  }

  createSlice(name: string, startSlot?: number): Slice {
    const profile = this.profiles().find((one) => one.name === name);
    if (!profile) throw new GpuDriverError(`There is no profile ${name}, or MIG is off.`, nvmlCodes.notFound);
    const places = profile.starts.filter((start) => startSlot === undefined || start === startSlot);
    const start = places.findLast((place) => this.fits(profile, place));
    if (start === undefined) throw new GpuDriverError(`No room for ${name}.`, nvmlCodes.insufficientResources);
    const uuid = `MIG-00000000-0000-0000-${String(this.index).padStart(4, '0')}-${String(this.made++).padStart(12, '0')}`;
    const { slots, smCount, memoryMiB } = profile;
    const slice: Slice = { uuid, profile: name, startSlot: start, slots, smCount, memoryMiB };
    this.slices.push(slice);
    return { ...slice };
  }

  destroySlice(uuid: string): void {
    const at = this.slices.findIndex((slice) => slice.uuid === uuid);
    if (at < 0) throw new GpuDriverError(`There is no slice ${uuid}.`, nvmlCodes.notFound);
    if (this.processes.some((process) => process.slice === uuid)) {
      throw new GpuDriverError('Processes use the slice.', nvmlCodes.inUse);
    }
    this.slices.splice(at, 1);
  }

  private fits({ name, slots }: Pick<SliceProfile, 'name' | 'slots'>, start: number): boolean {
    const used = this.slices.reduce((sum, slice) => sum + computeSlicesOf(slice.profile), 0);
    if (start + slots > memorySlots || used + computeSlicesOf(name) > computeSlices) return false;
    return this.slices.every((slice) => start + slots <= slice.startSlot || slice.startSlot + slice.slots <= start);
  }

  /** Number of further instances of a profile that fit, tried from the first start slot on. */
  private remaining(profile: MigProfile): number {
    const used = this.slices.reduce((sum, slice) => sum + computeSlicesOf(slice.profile), 0);
    const places = profile.starts.filter((start) => this.fits(profile, start)).length;
    return Math.min(places, Math.floor((computeSlices - used) / computeSlicesOf(profile.name)));
  }
}

/** Properties of a model. */
interface SimulatedModel {
  name: string;
  smCount: number;
  memoryMiB: number;
  profiles: readonly MigProfile[];
  /** Whether NVML reports activity of SMs and memory (GPM), as from Hopper on. */
  gpm: boolean;
}

/** The models of the in-memory driver. The stand-in has a larger table; the contract suite compares both. */
const simulatedModels = {
  rtx3090: {
    name: 'NVIDIA GeForce RTX 3090 (simulated)',
    smCount: 82,
    memoryMiB: 24 * 1024,
    profiles: [],
    gpm: false,
  },
  'a100-40': {
    name: 'NVIDIA A100-SXM4-40GB (simulated)',
    smCount: 108,
    memoryMiB: 40 * 1024,
    profiles: migProfiles['a100-40'],
    gpm: false,
  },
  h100: {
    name: 'NVIDIA H100 80GB HBM3 (simulated)',
    smCount: 132,
    memoryMiB: 80 * 1024,
    profiles: migProfiles.h100,
    gpm: true,
  },
} satisfies Record<string, SimulatedModel>;

type SimulatedType = keyof typeof simulatedModels;
