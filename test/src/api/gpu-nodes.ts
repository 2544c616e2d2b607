// Rows of the GPU table, as an agent writes them.
import { gpuRowTtlMs, gpuTable } from '@gpuwhisk/common/gpu';
import type { Device, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';

/** A healthy device in MPS mode. */
export function a100(uuid: string, changes: Partial<Device> = {}): Device {
  return {
    ...{ uuid, index: 0, name: 'NVIDIA A100-SXM4-40GB', type: 'a100-40', smCount: 108, memoryMiB: 40_960 },
    ...{ mode: 'mps', slices: [], simulated: true },
    ...changes,
  };
}

/** The row of a node with these devices, all healthy. */
export function nodeRow(devices: Device[], residents: Resident[] = [], changes: Partial<NodeStatus> = {}): NodeStatus {
  return {
    ...{ invoker: 'invoker0', version: 1, at: 1, devices, residents },
    status: devices.map(({ uuid }) => ({
      ...{ uuid, at: 1, usedMemoryMiB: 0, utilisation: 0.25, processes: [] },
      health: { state: 'healthy', reasons: [] },
    })),
    ...changes,
  };
}

let told = 0;

/** Has the versions of rows count from 1 again, so that placements do not depend on runs before. */
export function restartVersions(): void {
  told = 0;
}

/** Sets a node's row; keeps the row's version if it is above 1. */
export async function setNode(state: ClusterState, row: NodeStatus): Promise<void> {
  told += 1;
  const stamped = { ...row, version: row.version > 1 ? row.version : told };
  await state.setRow(gpuTable, row.invoker, stamped as unknown as JsonValue, gpuRowTtlMs);
}
