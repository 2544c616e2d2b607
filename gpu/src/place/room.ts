import type { Rejection } from '@gpuwhisk/common/gpu';
import type { GpuState, View, Task } from '../view/view.js';
import { holdsToShares } from '../view/shares.js';
import { neededMiB } from '../view/account.js';
import type { Account, Work } from '../view/account.js';
import { refusalOf } from './fact-filters.js';

/** The account of a GPU of a snapshot, which a policy fills: what is there and what it has put there so far. */
export interface Room extends Account {
  gpu: GpuState;
  /** Shares given away. */
  load: number;
}

const works = new WeakMap<Task, Work>();

/** The properties of a task that fact filters read; the same object each time. */
export function workOf(task: Task): Work {
  let work = works.get(task);
  if (work === undefined) {
    const { function: action, namespace, isolation, gpus, memoryMiB, maxShare = 1 } = task;
    work = { action, namespace, gpus, memoryMiB, isBounded: maxShare < 1, ...(isolation && { isolation }) };
    works.set(task, work);
  }
  return work;
}

/** Memory that a task takes of a GPU, MiB; all of it if its need is not known. */
export function needMiB(task: Task, { memoryMiB }: GpuState): number {
  return neededMiB(task, { capacityMiB: memoryMiB });
}

const healthy = { state: 'healthy', reasons: [] } as const satisfies { state: string; reasons: readonly string[] };

/** The account of an empty GPU. */
export function emptyRoomOf(gpu: GpuState): Room {
  const { mode, memoryMiB, facts } = gpu;
  return {
    gpu,
    load: 0,
    mode,
    health: { ...healthy, reasons: [] },
    capacityMiB: memoryMiB,
    availableMiB: memoryMiB,
    clients: 0,
    busy: 0,
    workloads: facts?.workloads ?? 0,
    staying: [],
  };
}

/** The GPUs of a snapshot, to be filled. */
export function roomsOf({ gpus }: Pick<View, 'gpus'>): Room[] {
  return gpus.map((gpu) => {
    const room = emptyRoomOf(gpu);
    for (const { task, share } of gpu.running) occupy(room, task, share);
    // Counted facts are more precise than sums of the running tasks.
    return gpu.facts === undefined ? room : { ...room, ...gpu.facts };
  });
}

/** Why a task cannot be put into a room; undefined if it can. */
export function obstacle(room: Room, task: Task): Pick<Rejection, 'reason' | 'numbers'> | undefined {
  if (task.allowed?.has(room.gpu.id) === false) return { reason: 'it may not run there', numbers: {} };
  return refusalOf(room, workOf(task));
}

/** Puts a task into a room. */
export function occupy(room: Room, task: Task, share: number): void {
  room.availableMiB -= needMiB(task, room.gpu);
  room.load += share;
  room.clients += 1;
  room.busy += 1;
  room.staying = [...room.staying, workOf(task)];
}

/** Takes out of a room a task that was put there. */
export function vacate(room: Room, task: Task, share: number): void {
  const work = workOf(task);
  room.availableMiB += needMiB(task, room.gpu);
  room.load -= share;
  room.clients -= 1;
  room.busy -= 1;
  room.staying = room.staying.filter((one) => one !== work);
}

/** The key that all GPUs of a task which needs several share. */
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
        (!workOf(task).isBounded || holdsToShares(gpu.mode)) &&
        needMiB(task, gpu) <= gpu.memoryMiB &&
        (task.gpus === 1 || gpu.mode !== 'mig'),
    )
    .sort((one, other) => mayNow(other) - mayNow(one) || other.availableMiB - one.availableMiB);
  return gangFor(could, task) ?? [];
}
