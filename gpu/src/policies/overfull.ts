import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import { refusalOf } from '../place/fact-filters.js';
import { requestOfTask } from '../place/request-of.js';
import { neededMiB } from '../view/account.js';
import type { Account } from '../view/account.js';
import type { Start } from '../view/decision.js';
import type { Ledger } from '../view/ledger.js';
import type { PlaceAccount } from '../view/account.js';
import { placeIdsOf } from '../view/occupancy.js';
import { gangKey } from '../view/places.js';
import type { Task } from '../view/view.js';

/**
 * Why starts cannot be carried out together by the facts of the ledger's places; undefined if they can. Every start names as
 * many known places as its task needs.
 */
export function overfull(
  starts: readonly Start[],
  tasks: ReadonlyMap<string, Task>,
  ledger: Ledger,
): string | undefined {
  const forks = new Map<string, Account>();
  for (const start of starts) {
    const places = [start.gpu, ...(start.alsoOn ?? [])].map((id) => ledger.account(id)!);
    const task = tasks.get(start.task)!;
    const fault =
      unlikeFault(places) ??
      (start.choice === undefined ? forkedFault(task, places, forks) : heldFault(start, places, ledger));
    if (fault !== undefined) return `task '${start.task}' is started ${fault}`;
  }
  return undefined;
}

function unlikeFault([first, ...others]: readonly PlaceAccount[]): string | undefined {
  const isAlike = others.every(({ place }) => gangKey(place) === gangKey(first!.place));
  return isAlike ? undefined : 'on GPUs that are not alike on one node';
}

/** Adds a task to the forks of its places, if their facts allow it. */
function forkedFault(task: Task, places: readonly PlaceAccount[], forks: Map<string, Account>): string | undefined {
  const work = requestOfTask(task);
  for (const { id, ...account } of places) {
    if (task.allowed?.has(id) === false) return `on '${id}', where it may not run`;
    const fork = forks.get(id) ?? forkOf(account);
    forks.set(id, fork);
    const refusal = refusalOf(fork, work);
    if (refusal !== undefined)
      return `on '${id}', which cannot take it: ${refusal.reason}${numbersOf(refusal.numbers)}`;
    fork.availableMiB -= neededMiB(work, fork);
    fork.clients += 1;
    fork.busy += 1;
    fork.staying = [...fork.staying, work];
  }
  return undefined;
}

/** As policies see a place: memory of others is none of its capacity. */
function forkOf(account: Omit<PlaceAccount, 'id'>): Account {
  const { mode, health, availableMiB, clients, busy, workloads, staying, capacityMiB, foreignMiB } = account;
  return {
    mode,
    health,
    availableMiB,
    clients,
    busy,
    workloads,
    staying,
    capacityMiB: Math.max(0, capacityMiB - foreignMiB),
  };
}

/** A policy holds without the ledger's asking the filters: the sums of the places tell what it has done. */
function heldFault({ task, choice }: Start, places: readonly PlaceAccount[], ledger: Ledger): string | undefined {
  const placement = choice?.placement;
  const ids = placement === undefined ? [] : placeIdsOf(placement);
  const isThere = ids.length === places.length && places.every(({ id }) => ids.includes(id));
  if (!isThere || ledger.placementOf(task) !== placement) return 'by a placement that it does not hold there';
  // What an instance that is there holds was given to it before.
  if (choice?.reuses !== undefined) return undefined;
  for (const { id, mode, availableMiB, clients, busy } of places) {
    if (availableMiB < 0) return `on '${id}', which lacks ${-availableMiB} MiB for it`;
    if (mode === 'exclusive' && busy > 1) return `on '${id}', which serves one process at a time`;
    if (mode === 'mps' && clients > mpsClientLimit) return `on '${id}', which has as many clients as MPS serves`;
  }
  return undefined;
}

function numbersOf(numbers: Record<string, number>): string {
  const told = Object.entries(numbers).map(([name, value]) => `${name} ${value}`);
  return told.length === 0 ? '' : ` (${told.join(', ')})`;
}
