// The platform's placement as a packer.
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus } from '@gpuwhisk/common/gpu';
import { placeDilu } from '@gpuwhisk/gpu/algorithms/dilu/place';
import type { PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import type { Bounds, FleetShape } from './fleet.js';
import type { PackedInstance } from './instances.js';
import type { Packer } from './packing.js';

/** Devices that a language model may span, at most (Dilu, section 3.3: a few stages of a pipeline). */
export const mostSpans = 4;

/** A packer with the times of its starts. */
export interface TimedPacker extends Packer {
  /** Each placement with its hold, microseconds. */
  readonly us: readonly number[];
}

/**
 * Places by `placeDilu` in a ledger. Devices are in mode `timeslice`, where kernel tokens hold processes to their shares:
 * under MPS an instance of several devices has them for itself.
 */
export function ledgerPacker({ nodes, perNode, memoryMiB }: FleetShape, bounds: Bounds): TimedPacker {
  const ledger = new Ledger();
  const name = (node: number): string => `node${String(node).padStart(5, '0')}`;
  for (let node = 0; node < nodes; node += 1) ledger.heard(rowOf(name(node), perNode, memoryMiB), 0);
  const limits = { kept: new Set<string>(), isOpen: () => true, isNew: true };
  const us: number[] = [];
  const devicesOf = new Map<string, readonly string[]>();
  const instancesOn = new Map<string, number>();
  const count = (devices: readonly string[], by: number): void => {
    for (const one of devices) {
      const left = (instancesOn.get(one) ?? 0) + by;
      if (left > 0) instancesOn.set(one, left);
      else instancesOn.delete(one);
    }
  };
  return {
    us,
    used: () => instancesOn.size,
    start({ instance }) {
      const request = requestOf(instance);
      const { action, namespace, isolation } = request;
      const from = performance.now();
      const { placement } = placeDilu(ledger, request, limits, { epoch: 1, at: 0 }, bounds);
      if (placement === undefined) throw new Error(`instance ${instance.id} fits on no device`);
      ledger.hold({ activationId: instance.id, action, namespace, isolation, placement, ended: false }, Infinity);
      us.push((performance.now() - from) * 1000);
      devicesOf.set(instance.id, placement.devices);
      count(placement.devices, 1);
      check(ledger, placement.devices, bounds);
      return placement.devices.length;
    },
    end({ instance }) {
      ledger.release(instance.id);
      count(devicesOf.get(instance.id) ?? [], -1);
      devicesOf.delete(instance.id);
    },
    lagOf({ instance }) {
      const beside = (devicesOf.get(instance.id) ?? []).map(
        (id) => (ledger.account(id)?.requestSum ?? 0) - instance.request,
      );
      return (Math.max(...beside) - Math.min(...beside)) / 1000;
    },
  };
}

/** Throws Error if a device has more than the bounds and its memory allow. */
function check(ledger: Ledger, devices: readonly string[], { omega, gamma }: Bounds): void {
  for (const id of devices) {
    const account = ledger.account(id);
    const { requestSum = 0, limitSum = 0, freeMiB = -1, clients = 0 } = account ?? {};
    const isOver = clients > 1 && (requestSum > omega * 1000 || limitSum > gamma * 1000);
    if (freeMiB < 0 || isOver) throw new Error(`device ${id} has ${requestSum}, ${limitSum} and ${freeMiB} MiB free`);
  }
}

function requestOf(instance: PackedInstance): PlacementRequest {
  const { function: name, kind, gpus, request, limit, memoryMiB } = instance;
  const share = {
    ...{ smRequest: request / 1000, smLimit: limit / 1000 },
    ...{ shareClass: classAtOrAbove(limit / 1000), memoryMiB },
  };
  return {
    ...{
      action: `/n/${name}`,
      namespace: 'n',
      isolation: 'shared',
      share,
      memoryMiB,
      gpus,
      batch: 1,
      isBounded: false,
    },
    ...(kind === 'llm' && { spans: mostSpans }),
  };
}

function rowOf(invoker: string, count: number, memoryMiB: number): NodeStatus {
  const devices = Array.from({ length: count }, (_, index): Device => ({
    ...{ uuid: `${invoker}.${index}`, index, name: 'NVIDIA A100', type: 'a100-40', smCount: 108 },
    // The ledger gives away this part of it, rounded down.
    ...{ memoryMiB: (memoryMiB + 0.5) / gpuMemoryBound, mode: 'timeslice', slices: [], simulated: true },
  }));
  const status = devices.map(({ uuid }): DeviceStatus => ({
    ...{ uuid, at: 0, usedMemoryMiB: 0, processes: [] },
    health: { state: 'healthy', reasons: [] },
  }));
  return { invoker, version: 1, at: 0, devices, status, residents: [] };
}
