// The parts of a policy's decision, joined to the tasks that they are about.
import type { Rejection } from '@gpuwhisk/common/gpu';
import type { PlacementChoice } from '@gpuwhisk/gpu/view/account';
import type { Start, TaskRejection } from '@gpuwhisk/gpu/view/decision';
import type { Task } from '@gpuwhisk/gpu/view/view';

/** Alternatives that a decision has rejected, by task. */
export function alternativesByTask(rejected: readonly TaskRejection[]): Map<string, Rejection[]> {
  const byTask = new Map<string, Rejection[]>();
  for (const { task, ...alternative } of rejected) {
    const known = byTask.get(task);
    if (known === undefined) byTask.set(task, [alternative]);
    else known.push(alternative);
  }
  return byTask;
}

/** The value of a queued task. Throws Error for a task that is not queued; `guarded` rejects decisions that name one. */
export function ofTask<Value>(values: ReadonlyMap<string, Value>, task: string): Value {
  const value = values.get(task);
  if (value === undefined) throw new Error(`the decision names task '${task}', which is not queued`);
  return value;
}

/** `choice` with the predicted time of the run, if there is one. */
export function withPrediction(
  choice: PlacementChoice,
  { soloMs, startMs = 0 }: Task,
  { predictedMs }: Start,
): PlacementChoice {
  if (choice.placement === undefined || soloMs === undefined || predictedMs === undefined) return choice;
  const predicted = { soloMs, runMs: Math.max(0, predictedMs - startMs) };
  return { ...choice, rejected: choice.rejected, placement: { ...choice.placement, predicted } };
}
