// What the API answers about GPUs, as far as the console shows it. Fractions are 0 to 1.

/** A GPU. */
export interface GpuDevice {
  invoker: string;
  uuid: string;
  index: number;
  name: string;
  type: string;
  mode: 'exclusive' | 'timeslice' | 'mps' | 'mig';
  memoryMiB: number;
  usedMemoryMiB?: number;
  utilisation?: number;
  simulated: boolean;
  slices: { uuid: string; profile: string; memoryMiB?: number; startSlot?: number; slots?: number }[];
  health: { state: string; reasons?: string[] };
  cut?: { profiles: string[]; state: string; reason?: string };
  functions: GpuFunction[];
  workloads: { id: string; name: string; memoryMiB?: number; mpsPercent?: number }[];
}

/** An instance of a function on a GPU. Without names where it is another namespace's. */
export interface GpuFunction {
  action?: string;
  namespace?: string;
  container?: string;
  slice?: string;
  share: number;
  smRequest: number;
  smLimit: number;
  memoryMiB: number;
  heldMiB?: number;
  running: number;
}
