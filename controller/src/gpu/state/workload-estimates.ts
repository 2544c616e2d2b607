// What is known of workloads without their reports: degradation, estimated from what runs beside them, and use of the GPU.
import type { DeviceMode, DeviceStatus, NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import type { GpuTable } from './gpu-table.js';

/** An estimated degradation, fraction 0–1, and the source of the workload's demand for SMs. */
export interface DegradationEstimate {
  estimatedDegradation: number;
  /** The chip's counters while the workload computed alone (GPM), or the share that the workload may use. */
  estimatedFrom: 'activity' | 'shares';
}

/** Devices with at least this utilisation count as busy all the time: pauses would lower their SM activity. */
const busyFrom = 0.9;
/** Looks that are kept of a device; the greatest activity counts: pauses make it too small, and nothing too great. */
const mostKept = 15;

/** Activities of the chip while one process that is not the platform's computed, and no function; fractions. */
interface LookAlone {
  /** Absent: the agent does not know the process for that of a workload. */
  workload?: string;
  sm: number;
  dram?: number;
}

interface SeenDevice {
  invoker: string;
  mode: DeviceMode;
  /** Limits of the instances in which functions run, fractions of the SMs. */
  limits: number[];
  /** The process that last computed alone, and the looks at it. */
  pid?: number;
  alone: LookAlone[];
}

/** Estimates by the agents' rows. */
export class WorkloadEstimates {
  private readonly devices = new Map<string, SeenDevice>();

  constructor(table: Pick<GpuTable, 'nodes' | 'onRow' | 'onGone'>) {
    table.onRow((node) => this.observe(node));
    table.onGone((invoker) => {
      for (const [uuid, seen] of this.devices) if (seen.invoker === invoker) this.devices.delete(uuid);
    });
    for (const node of table.nodes()) this.observe(node);
  }

  /**
   * The degradation of a workload by the functions that run on its device. SMs are divided max-min fairly among MPS
   * clients, and time equally among other processes; contention for memory is left out. Undefined if no function runs
   * there, or under MIG.
   */
  estimateOf(workload: Workload): DegradationEstimate | undefined {
    const { device, origin, mpsPercent = 100 } = workload;
    const seen = this.devices.get(device);
    if (seen === undefined || seen.limits.length === 0 || seen.mode === 'mig') return undefined;
    if (seen.mode !== 'mps' || origin !== 'started') {
      // All MPS clients together take the turns of one process.
      const others = seen.mode === 'mps' ? 1 : seen.limits.length;
      return { estimatedDegradation: others / (others + 1), estimatedFrom: 'shares' };
    }
    const share = mpsPercent / 100;
    const { smUtil } = this.featuresOf(workload) ?? {};
    const demand = Math.min(share, smUtil ?? 1);
    return {
      estimatedDegradation: 1 - fairPart(demand, seen.limits) / demand,
      estimatedFrom: smUtil === undefined ? 'shares' : 'activity',
    };
  }

  /** What a workload fills of its device, measured while it computed alone; undefined if that was never seen. */
  featuresOf({ id, device }: Pick<Workload, 'id' | 'device'>): { smUtil: number; dramUtil?: number } | undefined {
    const looks = this.devices.get(device)?.alone.filter(({ workload = id }) => workload === id) ?? [];
    if (looks.length === 0) return undefined;
    const greatest = (values: readonly number[]): number => Math.round(Math.max(...values) * 100) / 100;
    const drams = looks.flatMap(({ dram }) => dram ?? []);
    const smUtil = Math.max(0.01, greatest(looks.map(({ sm }) => sm)));
    return { smUtil, ...(drams.length > 0 && { dramUtil: greatest(drams) }) };
  }

  private observe({ invoker, devices, residents, status }: NodeStatus): void {
    for (const { uuid, mode } of devices) {
      const limits = residents
        .filter(({ device, activations }) => device === uuid && activations.length > 0)
        .map(({ share }) => share.smLimit);
      const known = this.devices.get(uuid);
      // The activity is an average since the look before, in which no function may have run either.
      const isAlone = limits.length === 0 && known?.limits.length === 0;
      const found = isAlone ? lookAlone(status.find((one) => one.uuid === uuid)) : undefined;
      const pid = found?.pid ?? known?.pid;
      const kept = pid === known?.pid ? (known?.alone ?? []) : [];
      const alone = found === undefined ? kept : [...kept, found.look].slice(-mostKept);
      this.devices.set(uuid, { invoker, mode, limits, alone, ...(pid !== undefined && { pid }) });
    }
  }
}

/** The only process that computes, if that is not the platform's and computes all the time. */
function lookAlone(status: DeviceStatus | undefined): { pid: number; look: LookAlone } | undefined {
  const { utilisation = 0, smActivity: sm = 0, dramActivity: dram, processes = [] } = status ?? {};
  if (utilisation < busyFrom || !(sm > 0)) return undefined;
  const [first, second] = processes.filter((process) => process.utilisation !== 0);
  if (first === undefined || second !== undefined || first.container !== undefined) return undefined;
  const { pid, workload } = first;
  return { pid, look: { sm, ...(dram !== undefined && { dram }), ...(workload !== undefined && { workload }) } };
}

/** What a demand gets of a whole beside other demands: each gets at most what it asks for, and else as much as others. */
export function fairPart(demand: number, others: readonly number[]): number {
  let left = 1;
  let waiting = others.length + 1;
  for (const other of others.toSorted((one, two) => one - two)) {
    const equal = left / waiting;
    if (other >= equal || other >= demand) return Math.min(demand, equal);
    left -= other;
    waiting -= 1;
  }
  return Math.min(demand, left);
}
