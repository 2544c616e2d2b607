// A ledger for a view that has none, and the requests of tasks that have none.
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus, Resident, Share } from '@gpuwhisk/common/gpu';
import { computePart } from '../predict/protean-slowdowns.js';
import { Ledger } from '../view/ledger.js';
import type { GpuState, OpenLedger, RunningTask, Task } from '../view/view.js';
import { needMiB } from './gpu-account.js';
import { classAtOrAbove } from '../view/shares.js';
import type { PlacementRequest } from '../view/account.js';

/** The SMs of a GPU are not in a view; its compute slices stand for them. */
const computeSlices = 7;

/** A ledger made of the GPUs of a view that has none, as their agents would report them. */
export function ledgerOf(gpus: readonly GpuState[]): OpenLedger {
  const gangs = gangsOf(gpus);
  const rows = new Map<string, NodeStatus>();
  for (const gpu of gpus) {
    let row = rows.get(gpu.node);
    if (row === undefined) {
      row = { invoker: gpu.node, version: 0, at: 0, devices: [], status: [], residents: [] };
      rows.set(gpu.node, row);
    }
    row.devices.push(deviceOf(gpu));
    row.status.push(statusOf(gpu));
    for (const one of gpu.running) row.residents.push(residentOf(one, gpu, gangs));
    for (const [at, { function: action, namespace, share, request, memoryMiB }] of (gpu.idle ?? []).entries()) {
      row.residents.push({
        container: `${gpu.id} ${at}`,
        action,
        namespace,
        isolation: 'shared',
        memoryMiB,
        activations: [],
        share: sharePart(share, request, memoryMiB),
        ...onPlace(gpu),
      });
    }
  }
  const ledger = new Ledger();
  for (const row of rows.values()) ledger.heard(row, 0);
  return { ledger, isOpen: () => true, epoch: 0 };
}

/** The GPUs of each task that runs on several. */
function gangsOf(gpus: readonly GpuState[]): Map<string, string[]> {
  const gangs = new Map<string, string[]>();
  for (const { id, running } of gpus) {
    for (const { task } of running) {
      if (task.gpus > 1) gangs.set(task.id, [...(gangs.get(task.id) ?? []), id]);
    }
  }
  return gangs;
}

function deviceOf({ id, type: kind, mode, memoryMiB: givenAwayMiB }: GpuState): Device {
  // A ledger gives this part of it away, rounded down.
  const memoryMiB = (givenAwayMiB + 0.5) / gpuMemoryBound;
  const [type = kind, profile = ''] = mode === 'mig' ? kind.split(':') : [kind];
  const smCount = Math.round(computeSlices * computePart({ type: kind }));
  const slice = { uuid: id, profile, startSlot: -1, slots: 1, memoryMiB, smCount };
  return {
    uuid: mode === 'mig' ? `device of ${id}` : id,
    index: 0,
    name: type,
    type,
    memoryMiB,
    smCount: computeSlices,
    mode,
    slices: mode === 'mig' ? [slice] : [],
    simulated: false,
  };
}

function statusOf({ id, mode, facts }: GpuState): DeviceStatus {
  const processes = Array.from({ length: facts?.workloads ?? 0 }, (_, at) => ({
    pid: at + 1,
    memoryMiB: 0,
    ...(mode === 'mig' && { slice: id }),
  }));
  const uuid = mode === 'mig' ? `device of ${id}` : id;
  return { uuid, at: 0, usedMemoryMiB: 0, health: { state: 'healthy', reasons: [] }, processes };
}

function residentOf({ task, share, request }: RunningTask, gpu: GpuState, gangs: Map<string, string[]>): Resident {
  const { action, namespace, isolation } = requestOfTask(task);
  const gang = gangs.get(task.id);
  const memoryMiB = needMiB(task, gpu);
  return {
    container: task.id,
    action,
    namespace,
    isolation,
    memoryMiB,
    activations: [task.id],
    share: sharePart(share, request, memoryMiB),
    ...(gang !== undefined && { gang }),
    ...onPlace(gpu),
  };
}

function sharePart(share: number, request: number | undefined, memoryMiB: number): Share {
  return { ...shareAt(share, memoryMiB), smRequest: Math.min(request ?? share, share) };
}

function onPlace({ id, mode }: GpuState): Pick<Resident, 'device' | 'slice'> {
  return mode === 'mig' ? { device: `device of ${id}`, slice: id } : { device: id };
}

/** The request of a task to a device. */
export function requestOfTask(task: Task): PlacementRequest {
  const { request, namespace, memoryMiB, gpus, isolation = 'shared', maxShare = 1, share = maxShare } = task;
  if (request !== undefined) return request;
  return {
    action: task.function,
    namespace,
    share: shareAt(share, memoryMiB),
    memoryMiB,
    gpus,
    isolation,
    // A task is a whole batch already.
    isBounded: maxShare < 1,
    batch: 1,
  };
}

/** A share of `fraction` of the SMs, asked for whole. */
export function shareAt(fraction: number, memoryMiB: number): Share {
  return { shareClass: classAtOrAbove(fraction), smRequest: fraction, smLimit: fraction, memoryMiB };
}
