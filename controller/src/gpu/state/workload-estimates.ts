// Degradation of workloads that do not report, estimated from what runs beside them.
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
/** SM activities that are kept of a device; the greatest counts, as pauses make them too small and nothing too great. */
const mostKept = 15;

interface SeenDevice {
  invoker: string;
  mode: DeviceMode;
  /** Limits of the instances in which functions run, fractions of the SMs. */
  limits: number[];
  /** SM activities while one process that is not the platform's computed, and no function. */
  activities: number[];
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
  estimateOf({ device, origin, mpsPercent = 100 }: Workload): DegradationEstimate | undefined {
    const seen = this.devices.get(device);
    if (seen === undefined || seen.limits.length === 0 || seen.mode === 'mig') return undefined;
    if (seen.mode !== 'mps' || origin !== 'started') {
      // All MPS clients together take the turns of one process.
      const others = seen.mode === 'mps' ? 1 : seen.limits.length;
      return { estimatedDegradation: others / (others + 1), estimatedFrom: 'shares' };
    }
    const share = mpsPercent / 100;
    const demand = Math.min(share, ...(seen.activities.length > 0 ? [Math.max(...seen.activities)] : []));
    return {
      estimatedDegradation: 1 - fairPart(demand, seen.limits) / demand,
      estimatedFrom: seen.activities.length > 0 ? 'activity' : 'shares',
    };
  }

  private observe({ invoker, devices, residents, status }: NodeStatus): void {
    for (const { uuid, mode } of devices) {
      const limits = residents
        .filter(({ device, activations }) => device === uuid && activations.length > 0)
        .map(({ share }) => share.smLimit);
      const known = this.devices.get(uuid);
      // The activity is an average since the look before, in which no function may have run either.
      const isAlone = limits.length === 0 && known?.limits.length === 0;
      const activity = isAlone ? activityOf(status.find((one) => one.uuid === uuid)) : undefined;
      const kept = known?.activities ?? [];
      const activities = activity === undefined ? kept : [...kept, activity].slice(-mostKept);
      this.devices.set(uuid, { invoker, mode, limits, activities });
    }
  }
}

/** SM activity of the only process that computes, if that is not the platform's and computes all the time. */
function activityOf(look: DeviceStatus | undefined): number | undefined {
  if (look === undefined || (look.utilisation ?? 0) < busyFrom || !((look.smActivity ?? 0) > 0)) return undefined;
  const [first, second] = look.processes.filter(({ utilisation }) => utilisation !== 0);
  const isWorkload = first !== undefined && second === undefined && first.container === undefined;
  return isWorkload ? look.smActivity : undefined;
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
