// What plans ask of places that they fork: whether a task has room there, and which places are alike.
import { neededMiB, tasksMiB } from '../../ledger/account.js';
import type { Work } from '../../ledger/account.js';
import type { PlaceFork } from '../../ledger/fork.js';
import { holdsToShares } from '../../view/shares.js';
import type { Task } from '../../view/view.js';
import { idleInstances } from '../../stages/place/candidate.js';
import { refusalOf } from '../../stages/place/fact-filters.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { gangOf } from '../../stages/place/gangs.js';

const works = new WeakMap<Task, Work>();

/** The properties of a task that fact filters read; the same object each time. */
export function workOf(task: Task): Work {
  let work = works.get(task);
  if (work === undefined) {
    const { function: action, namespace, isolation, gpus, memoryMiB, maxShare = 1, request } = task;
    const timeLimitMs = request?.timeLimitMs;
    const limits = { ...(isolation && { isolation }), ...(timeLimitMs !== undefined && { timeLimitMs }) };
    work = { action, namespace, gpus, memoryMiB, isBounded: maxShare < 1, ...limits };
    works.set(task, work);
  }
  return work;
}

/** Why a task cannot be placed on a forked place; undefined if it can. */
export function obstacle(fork: PlaceFork, task: Task): Refusal | undefined {
  const { account, health } = fork;
  if (task.allowed?.has(account.id) === false) return { reason: 'it may not run there', numbers: {} };
  // A place that leaves takes work into the instances that it has.
  const joined = health?.state === 'leaving' ? idleInstances(account.occupants, task)[0] : undefined;
  return refusalOf(fork, workOf(task), joined);
}

/** Something planned on a forked place. */
interface Forked {
  fork: PlaceFork;
}

/** The places that a task gets together; undefined if there are none. */
export function gangFor<One extends Forked>(places: readonly One[], { gpus }: Task): One[] | undefined {
  return gangOf(places, gpus, ({ fork }) => fork.account.place);
}

/**
 * The places to keep for an overdue task: those that will have most memory for it, also where it may not
 * be put now: isolation closes a place for as long as others run there, and a failed attempt until its node is heard of.
 */
export function placesToKeepFor<One extends Forked>(places: readonly One[], task: Task): One[] {
  const mayNow = ({ fork }: One): number => Number(task.allowed?.has(fork.account.id) !== false);
  const could = places
    .filter(
      ({ fork: { account, mode } }) =>
        (!workOf(task).isBounded || holdsToShares(mode)) &&
        neededMiB(task, account) <= tasksMiB(account) &&
        (task.gpus === 1 || mode !== 'mig'),
    )
    .sort((one, other) => mayNow(other) - mayNow(one) || other.fork.availableMiB - one.fork.availableMiB);
  return gangFor(could, task) ?? [];
}
