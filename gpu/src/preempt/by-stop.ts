import { neededMiB } from '../view/account.js';
import type { GpuState, InstanceState, RunningTask, Task, View } from '../view/view.js';
import { deadlineAt } from '../view/view.js';
import type { Preempt } from './preempt.js';

/** Settings of `byStop`. */
export const byStopDefaults = {
  /** How long what gives way may go on, ms. */
  graceMs: 1000,
};

/**
 * A run without an SLO is stopped where that makes room for a task which can meet its SLO then: on the GPU that lacks the
 * least memory, the run that has been there for the shortest time, so that the least work is lost. One at a time on a GPU.
 * A training job is stopped only if it keeps checkpoints.
 */
export function byStop({ graceMs }: typeof byStopDefaults): Preempt {
  return (view, waiting) => {
    if (waiting.length === 0) return [];
    const { at, gpus, instances = [] } = view;
    const left = new Set(gpus.filter((gpu) => !instances.some((one) => isGoing(one, gpu))));
    return waiting.flatMap((task) => {
      const { startMs = 0, soloMs = 0 } = task;
      const isHopeless = at + graceMs + startMs + soloMs > deadlineAt(task);
      if (task.gpus > 1 || isHopeless) return [];
      const victims = [...left].flatMap((gpu) => victimOn(gpu, task, view));
      const [victim] = victims.toSorted(
        (one, other) => one.lackingMiB - other.lackingMiB || other.run.startedAt - one.run.startedAt,
      );
      if (victim === undefined) return [];
      left.delete(victim.gpu);
      const reason = `gives way to ${task.id}, which has an SLO`;
      return [{ kind: 'retire' as const, instance: victim.instance.id, graceMs, reason }];
    });
  };
}

interface Victim {
  gpu: GpuState;
  run: RunningTask;
  instance: InstanceState;
  /** Memory that the task lacks there now, MiB. */
  lackingMiB: number;
}

function victimOn(gpu: GpuState, task: Task, { instances = [] }: View): Victim[] {
  const { running, memoryMiB, mode } = gpu;
  if (task.allowed?.has(gpu.id) === false) return [];
  const held = running.reduce((sum, one) => sum + neededMiB(one.task, { capacityMiB: memoryMiB }), 0);
  const lackingMiB = held + neededMiB(task, { capacityMiB: memoryMiB }) - memoryMiB;
  const isInTheWay = lackingMiB > 0 || (mode === 'exclusive' && running.length > 0);
  if (!isInTheWay) return [];
  return running.flatMap((run) => {
    const ownMiB = neededMiB(run.task, { capacityMiB: memoryMiB });
    const instance = instances.find(({ tasks }) => tasks.includes(run.task.id));
    const doesNotHelp = run.task.sloMs !== undefined || run.task.mustNotStop === true || ownMiB < lackingMiB;
    if (instance === undefined || instance.gpus.length > 1 || instance.tasks.length > 1 || doesNotHelp) return [];
    return [{ gpu, run, instance, lackingMiB }];
  });
}

/** Whether room is being made on a GPU already. */
function isGoing({ state, gpus }: InstanceState, { id }: GpuState): boolean {
  return state === 'draining' && gpus.includes(id);
}
