import type { Device, DeviceStatus, GpuProcess, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import { gpuTypeOf } from '@gpuwhisk/gpu/ledger/places';
import { fillOfActivity, isHeldBack } from '@gpuwhisk/gpu/stages/profile/fill';
import type { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';

/** Devices with at least this utilisation count as busy all the time, as pauses would lower their SM activity. */
const busyFrom = 0.9;
/** Shortest interval between two rows that gives a launch rate, ms; and the period of the rate, ms. */
const [leastMs, periodMs] = [500, 5];

/** Launch counts of a process in the last row in which it alone kept its device busy. */
interface Launched {
  at: number;
  blocks: number;
  waits: number;
}

/**
 * Learns functions' use of their GPUs from agents' rows: SM and memory activity by the chip's counters, and launch rates by
 * kernel tokens. A row counts if the device was busy all the time and only one container computed. NVML's utilisation is
 * used for that check only.
 */
export class ActivityProfiler {
  /** By node, then by container. */
  private readonly launched = new Map<string, Map<string, Launched>>();

  constructor(private readonly profiles: FunctionProfiles) {}

  /** Learns from a node's row. */
  observe({ invoker, devices, residents, status }: NodeStatus): void {
    const before = this.launched.get(invoker);
    const launched = new Map<string, Launched>();
    for (const look of status) {
      const device = devices.find(({ uuid }) => uuid === look.uuid);
      const process = onlyBusy(look);
      if (device === undefined || process === undefined) continue;
      const resident = residents.find((one) => one.container === process.container && one.device === device.uuid);
      if (resident === undefined) continue;
      this.learnActivity(device, look, process, resident);
      const seen = this.learnLaunches(device, look, resident, before?.get(resident.container));
      if (seen !== undefined) launched.set(resident.container, seen);
    }
    this.launched.set(invoker, launched);
  }

  private learnActivity(device: Device, look: DeviceStatus, process: GpuProcess, resident: Resident): void {
    const { action, share } = resident;
    const { smActivity, dramActivity } = look;
    if (action === undefined || smActivity === undefined) return;
    const gpu = { gpuType: typeOf(device, process), mode: device.mode };
    const fill = fillOfActivity(smActivity, share.smLimit);
    // A share that holds a function back also lowers its memory bandwidth.
    const isFree = !isHeldBack(smActivity, share.smLimit);
    this.profiles.seen(action, gpu, {
      ...(fill !== undefined && { fill }),
      ...(isFree && dramActivity !== undefined && { dramUtil: dramActivity }),
    });
  }

  /** Returns the counts for the comparison with the next row. */
  private learnLaunches(
    device: Device,
    { at }: DeviceStatus,
    { action, gang, share, launches }: Resident,
    before: Launched | undefined,
  ): Launched | undefined {
    // A token limit below the class reduces the time of the process, not its SMs.
    if (launches === undefined || gang !== undefined || share.smLimit * 100 < share.shareClass) return undefined;
    const { blocks, waits, cycleBatch } = launches;
    const now = { at, blocks, waits };
    if (before === undefined || blocks < before.blocks || at < before.at) return now;
    const elapsedMs = at - before.at;
    if (elapsedMs < leastMs) return before;
    if (action !== undefined && waits === before.waits && blocks > before.blocks) {
      const value = ((blocks - before.blocks) / elapsedMs) * periodMs;
      const gpu = { gpuType: typeOf(device), mode: device.mode };
      this.profiles.launched(action, gpu, Math.max(1, cycleBatch), { share: share.shareClass, value });
    }
    return now;
  }
}

/** A process of the only container that computed on a device. Undefined if others computed or the device had pauses. */
function onlyBusy({ utilisation = 0, processes }: DeviceStatus): GpuProcess | undefined {
  if (utilisation < busyFrom) return undefined;
  // A process without a utilisation may be busy.
  const busy = processes.filter((process) => process.utilisation !== 0);
  const [first] = busy;
  return first?.container !== undefined && busy.every(({ container }) => container === first.container)
    ? first
    : undefined;
}

/** The types of a device's places. */
export function typesOf(device: Device): string[] {
  return device.slices.length > 0 ? device.slices.map((slice) => gpuTypeOf(device, slice)) : [gpuTypeOf(device)];
}

function typeOf(device: Device, { slice: uuid }: Pick<GpuProcess, 'slice'> = {}): string {
  return gpuTypeOf(
    device,
    device.slices.find((slice) => slice.uuid === uuid),
  );
}

/** Whether a device has processes that are not the platform's. */
export function hasForeignProcesses(status: DeviceStatus | undefined): boolean {
  return status?.processes.some(({ container }) => container === undefined) ?? false;
}
