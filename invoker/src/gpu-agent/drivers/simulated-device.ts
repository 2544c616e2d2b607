import type { Device, GpuProcess, Slice } from '@gpuwhisk/common/gpu';
import type { MigProfile } from '@gpuwhisk/gpu/geometry/mig-profiles';
import { computeSlices, computeSlicesOf, memorySlots } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { DeviceSample, SliceProfile } from './gpu-driver.js';
import { GpuDriverError } from './gpu-driver.js';
import { nvmlCodes } from './nvml.js';
import { simulatedModels } from './simulated-models.js';
import type { SimulatedModel, SimulatedType } from './simulated-models.js';

type Process = Pick<GpuProcess, 'pid' | 'memoryMiB' | 'slice' | 'utilisation'>;
type Figures = Pick<DeviceSample, 'utilisation' | 'smActivity' | 'dramActivity' | 'temperatureC' | 'powerW'>;

/** One GPU in memory. */
export class SimulatedDevice {
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

  setExclusive(exclusive: boolean): void {
    this.exclusive = exclusive;
  }

  setMig(enabled: boolean): void {
    if (this.model.profiles.length === 0) throw new GpuDriverError(`${this.model.name} cannot be cut.`);
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

  /** As many as fit one after another, from the first start on. */
  private remaining(profile: MigProfile): number {
    const used = this.slices.reduce((sum, slice) => sum + computeSlicesOf(slice.profile), 0);
    const places = profile.starts.filter((start) => this.fits(profile, start)).length;
    return Math.min(places, Math.floor((computeSlices - used) / computeSlicesOf(profile.name)));
  }
}
