// Implementations of the stage `order` that only baselines name.
import { comparing } from '@gpuwhisk/gpu/stages/order/order';
import type { Task } from '@gpuwhisk/gpu/view/view';

/**
 * Tasks that can still meet their SLO alone on a GPU, by deadline; then the others, the shortest first (ElasticFlow, Gu and
 * others, ASPLOS 2023: best effort gets the remaining GPUs by marginal return).
 */
export const meetableFirst = comparing((one, other, at) => {
  const admitted = Number(canMeet(other, at)) - Number(canMeet(one, at));
  if (admitted !== 0) return admitted;
  return canMeet(one, at)
    ? one.arrivedAt + (one.sloMs ?? 0) - other.arrivedAt - (other.sloMs ?? 0)
    : (one.soloMs ?? Number.MAX_VALUE) - (other.soloMs ?? Number.MAX_VALUE);
});

function canMeet({ arrivedAt, sloMs, soloMs = 0, startMs = 0 }: Task, at: number): boolean {
  return sloMs !== undefined && at + startMs + soloMs <= arrivedAt + sloMs;
}

/** The longest first; one that has not been measured goes last. */
export const longestFirst = comparing((one, other) => (other.soloMs ?? 0) - (one.soloMs ?? 0));

/** The least time to the result first, start included; one that has not been measured goes last. */
export const leastRemainingFirst = comparing((one, other) => remainingMs(one) - remainingMs(other));

function remainingMs(task: Task): number {
  return lengthMs(task) + (task.startMs ?? 0);
}

function lengthMs({ soloMs }: Task): number {
  return soloMs ?? Number.MAX_VALUE;
}

/** The least memory first; one whose need is not known goes last. */
export const leastMemoryFirst = comparing((one, other) => needMiB(one) - needMiB(other));

function needMiB({ memoryMiB }: Task): number {
  return memoryMiB > 0 ? memoryMiB : Number.MAX_VALUE;
}
