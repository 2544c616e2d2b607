import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { Rejection } from '@gpuwhisk/common/gpu';
import { holdsToShares } from '../share/share-of.js';
import type { GpuState, Snapshot, Task } from './policy.js';

/** A GPU as a policy fills it: what runs there and what it has put there so far. */
export interface Room {
  gpu: GpuState;
  freeMiB: number;
  /** Shares given away. */
  load: number;
  /** Tasks that run or were put there. */
  clients: number;
}

/** What a task takes of a GPU's memory, MiB: all of it where its need is not known. */
export function needMiB({ memoryMiB }: Task, gpu: GpuState): number {
  return memoryMiB > 0 ? memoryMiB : gpu.memoryMiB;
}

/** The GPUs of a snapshot, to be filled. */
export function roomsOf({ gpus }: Snapshot): Room[] {
  return gpus.map((gpu) => ({
    gpu,
    freeMiB: gpu.running.reduce((left, { task }) => left - needMiB(task, gpu), gpu.memoryMiB),
    load: gpu.running.reduce((total, { share }) => total + share, 0),
    clients: gpu.running.length,
  }));
}

const notHeld = 'nothing holds it to the share that its namespace may have';

/** Whether a task gets no more of a GPU than it may have. */
function isBounded({ mode }: GpuState, { maxShare = 1 }: Task): boolean {
  return maxShare === 1 || holdsToShares(mode);
}

/** Why a task cannot be put into a room; undefined if it can. */
export function obstacle(room: Room, task: Task): Pick<Rejection, 'reason' | 'numbers'> | undefined {
  const { gpu, freeMiB, clients } = room;
  if (task.allowed?.has(gpu.id) === false) return { reason: 'it may not run there', numbers: {} };
  if (!isBounded(gpu, task)) return { reason: notHeld, numbers: { maxShare: task.maxShare ?? 1 } };
  if (task.gpus > 1 && gpu.mode === 'mig') return { reason: 'it is cut into slices', numbers: {} };
  const need = needMiB(task, gpu);
  if (need > gpu.memoryMiB) return { reason: 'too small', numbers: { capacityMiB: gpu.memoryMiB, needMiB: need } };
  if (gpu.mode === 'exclusive' && clients > 0) {
    return { reason: 'it serves one process at a time', numbers: { running: clients } };
  }
  if (gpu.mode === 'mps' && clients >= mpsClientLimit) {
    return { reason: 'it has as many clients as MPS serves', numbers: { clients } };
  }
  // Also where it has none left at all, and the task's need is not known.
  if (need > freeMiB || freeMiB <= 0) return { reason: 'too little free memory', numbers: { freeMiB, needMiB: need } };
  return undefined;
}

/** Puts a task into a room. */
export function occupy(room: Room, task: Task, share: number): void {
  room.freeMiB -= needMiB(task, room.gpu);
  room.load += share;
  room.clients += 1;
}

/** What the GPUs of a task that needs several have in common. */
function gangOf({ gpu }: Room): string {
  return `${gpu.node} ${gpu.type} ${gpu.mode}`;
}

/** The first rooms that are alike and on one node, as many as the task needs; undefined if there are not as many. */
export function gangFor<One extends Room>(rooms: readonly One[], { gpus }: Task): One[] | undefined {
  if (gpus === 1) return rooms[0] === undefined ? undefined : [rooms[0]];
  for (const room of rooms) {
    const alike = rooms.filter((other) => gangOf(other) === gangOf(room));
    if (alike.length >= gpus) return alike.slice(0, gpus);
  }
  return undefined;
}

/**
 * The rooms to keep for a task that has waited for too long: those that will have most memory for it, also where it may not
 * be put now: isolation closes a GPU for as long as others run there, and a failed attempt until its node is heard of.
 */
export function roomsToKeep<One extends Room>(rooms: readonly One[], task: Task): One[] {
  const mayNow = ({ gpu }: Room): number => Number(task.allowed?.has(gpu.id) !== false);
  const could = rooms
    .filter(
      ({ gpu }) =>
        isBounded(gpu, task) && needMiB(task, gpu) <= gpu.memoryMiB && (task.gpus === 1 || gpu.mode !== 'mig'),
    )
    .sort((one, other) => mayNow(other) - mayNow(one) || other.freeMiB - one.freeMiB);
  return gangFor(could, task) ?? [];
}
