// Requests of one function that run together: while an instance loads or runs a batch, the next one gathers in it.
import type { RunningTask, Task } from '../view/view.js';
import type { Run, SimulatedGpu } from './simulated-gpu.js';

/** Whether several requests may run in one instance. */
export function isBatched({ request }: Task): boolean {
  return request !== undefined && request.batch > 1;
}

/**
 * The first run of each instance, in order, and those that load. An instance has several tasks only where they are requests
 * of a batch.
 */
export function processesAmong<One extends Pick<RunningTask, 'task' | 'instance'> & { id?: string }>(
  runs: readonly One[],
): readonly One[] {
  if (!runs.some(({ task }) => isBatched(task))) return runs;
  const seen = new Set<string | undefined>(runs.map(({ id }) => id));
  return runs.filter(({ task, instance, id }) => {
    if (id !== undefined || instance === undefined || !isBatched(task)) return true;
    if (seen.has(instance)) return false;
    seen.add(instance);
    return true;
  });
}

/** The ids of the tasks in an instance with this one. */
export function tasksIn(
  runs: readonly Pick<RunningTask, 'task' | 'instance'>[],
  instance: string | undefined,
  task: Task,
): string[] {
  if (instance === undefined || !isBatched(task)) return [task.id];
  return runs.flatMap((one) => (one.instance === instance ? [one.task.id] : []));
}

/** Has the requests that wait in an instance run together, as many as its batch has; whether there were any. */
export function beginBatch(gpu: SimulatedGpu, instance: string, at: number): boolean {
  const waiting = gpu.runs.filter((one) => one.instance === instance && one.waits);
  const batch = waiting.slice(0, waiting[0]?.task.request?.batch);
  const leftMs = Math.max(...batch.map((one) => one.leftMs));
  for (const one of batch) Object.assign(one, { waits: false, startedAt: at, leftMs });
  return batch.length > 0;
}

/** The instance that a task joins, as runs have it; undefined if none of its function runs or loads there. */
export function hostOf(
  gpu: SimulatedGpu,
  { function: name, namespace }: Task,
  reuses: string | undefined,
): Pick<Run, 'instance' | 'class' | 'share' | 'request' | 'isLast'> | undefined {
  const own = gpu.runs.filter(({ task }) => task.function === name && task.namespace === namespace);
  const run = own.find(({ instance, task }) => instance === reuses || task.id === reuses) ?? own[0];
  if (run !== undefined) {
    const { instance, class: given, share, request, isLast } = run;
    return { instance, class: given, share, request, isLast };
  }
  const one = gpu.loading.find(({ id }) => id === reuses);
  return (
    one && { instance: one.id, class: one.share, share: one.share, request: one.request ?? one.share, isLast: false }
  );
}
