import type { Rejection } from '@gpuwhisk/common/gpu';
import { plannedShare } from '../view/view.js';
import type { GpuState, View, Task } from '../view/view.js';
import { holdsToShares } from '../view/shares.js';
import { neededMiB } from '../view/account.js';
import type { Account, Work } from '../view/account.js';
import { refusalOf } from './fact-filters.js';

/** The account of a GPU of a view, to which a policy adds the tasks that it places. */
export interface GpuAccount extends Account {
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
export function emptyGpuAccountOf(gpu: GpuState): GpuAccount {
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

/** The accounts of the GPUs of a view. */
export function gpuAccountsOf({ gpus }: Pick<View, 'gpus'>): GpuAccount[] {
  return gpus.map((gpu) => {
    const account = emptyGpuAccountOf(gpu);
    for (const one of gpu.running) occupy(account, one.task, plannedShare(gpu, one));
    // Counted facts are more precise than sums of the running tasks.
    return gpu.facts === undefined ? account : { ...account, ...gpu.facts };
  });
}

/** Why a task cannot be placed on a GPU; undefined if it can. */
export function obstacle(account: GpuAccount, task: Task): Pick<Rejection, 'reason' | 'numbers'> | undefined {
  if (task.allowed?.has(account.gpu.id) === false) return { reason: 'it may not run there', numbers: {} };
  return refusalOf(account, workOf(task));
}

/** Adds a task to the account of a GPU. */
export function occupy(account: GpuAccount, task: Task, share: number): void {
  account.availableMiB -= needMiB(task, account.gpu);
  account.load += share;
  account.clients += 1;
  account.busy += 1;
  account.staying = [...account.staying, workOf(task)];
}

/** Removes a task from the account of a GPU that it was added to. */
export function vacate(account: GpuAccount, task: Task, share: number): void {
  const work = workOf(task);
  account.availableMiB += needMiB(task, account.gpu);
  account.load -= share;
  account.clients -= 1;
  account.busy -= 1;
  account.staying = account.staying.filter((one) => one !== work);
}

/** The key that all GPUs of a task which needs several share. */
function gangOf({ gpu }: GpuAccount): string {
  return `${gpu.node} ${gpu.type} ${gpu.mode}`;
}

/** The first GPUs that are alike and on one node, as many as the task needs; undefined if there are not as many. */
export function gangFor<One extends GpuAccount>(accounts: readonly One[], { gpus }: Task): One[] | undefined {
  if (gpus === 1) return accounts[0] === undefined ? undefined : [accounts[0]];
  for (const account of accounts) {
    const alike = accounts.filter((other) => gangOf(other) === gangOf(account));
    if (alike.length >= gpus) return alike.slice(0, gpus);
  }
  return undefined;
}

/**
 * The GPUs to keep for an overdue task: those that will have most memory for it, also where it may not
 * be put now: isolation closes a GPU for as long as others run there, and a failed attempt until its node is heard of.
 */
export function gpusToKeep<One extends GpuAccount>(accounts: readonly One[], task: Task): One[] {
  const mayNow = ({ gpu }: GpuAccount): number => Number(task.allowed?.has(gpu.id) !== false);
  const could = accounts
    .filter(
      ({ gpu }) =>
        (!workOf(task).isBounded || holdsToShares(gpu.mode)) &&
        needMiB(task, gpu) <= gpu.memoryMiB &&
        (task.gpus === 1 || gpu.mode !== 'mig'),
    )
    .sort((one, other) => mayNow(other) - mayNow(one) || other.availableMiB - one.availableMiB);
  return gangFor(could, task) ?? [];
}
