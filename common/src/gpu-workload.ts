/** The ClusterState table of registered and started workloads, by id. */
export const workloadTable = 'gpuWorkloads';

/** A long-running process that is not a function: registered, started by us, or found on a device. */
export interface Workload {
  id: string;
  name: string;
  origin: 'registered' | 'started' | 'discovered';
  invoker: string;
  device: string;
  pid?: number;
  /** When that started, in the kernel's ticks since the boot (proc(5), starttime): numbers of processes are used again. */
  processStart?: number;
  /** Its process is gone, and whoever started it did not say so: its registration is to be forgotten. */
  ended?: boolean;
  /** Epoch ms. */
  since: number;
  memoryMiB?: number;
  /** Percent of the SMs that one which was started may use; absent: all. */
  mpsPercent?: number;
  /** How much slower it may get, fraction 0–1. */
  maxDegradation: number;
  /** Its rate alone on the device, and now, in a unit of its own: steps or samples per second; absent: it is not told. */
  baselineRate?: number;
  rate?: number;
  namespace?: string;
  command?: string;
}
