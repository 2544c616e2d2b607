import type { IdleInstance, Task } from '../view/view.js';
import { classAtOrAbove } from '../view/shares.js';

/** That processes stay after their runs, as the platform's do, until their memory is needed. */
export interface KeptInstances {
  /** Start of a task in one, ms. */
  warmMs: number;
  /** By GPU, in order: what is there at the beginning. */
  initial: readonly (readonly IdleInstance[])[];
}

/** A task in the process that it gets, and what idles on the GPU then. */
export interface StartedIn<Instance> {
  share: number;
  /** Absent: a new one. */
  reused?: Instance;
  idle: Instance[];
}

/**
 * Starts a task as the controller does: in an instance of its function with at least the share that was decided, the
 * smallest such, else in a new one of the next share class, for which instances go, the largest first, until it fits into
 * `freeMiB` of memory that no task holds.
 */
export function startAmong<Instance extends IdleInstance>(
  idle: readonly Instance[],
  task: Task,
  decided: number,
  freeMiB: number,
): StartedIn<Instance> {
  const own = idle.filter(
    ({ function: name, namespace, share }) =>
      name === task.function && namespace === task.namespace && share >= decided,
  );
  const reused = own.toSorted((a, b) => a.share - b.share)[0];
  if (reused !== undefined) {
    return { share: reused.share, reused, idle: idle.filter((one) => one !== reused) };
  }
  const left = idle.toSorted((a, b) => a.memoryMiB - b.memoryMiB);
  const lackingMiB = (): number => left.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0) + task.memoryMiB - freeMiB;
  while (left.length > 0 && lackingMiB() > 0) left.pop();
  return { share: classAtOrAbove(decided) / 100, idle: left };
}

/** What a task leaves behind. */
export function instanceOf({ function: name, namespace, memoryMiB }: Task, share: number): IdleInstance {
  return { function: name, namespace, share, memoryMiB };
}
