import { neededMiB } from '../../ledger/account.js';
import type { PlaceAccount } from '../../ledger/account.js';
import { usedPlaces } from '../../ledger/used-places.js';
import type { InstanceState, Task, View } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';
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
    const { at, instances = [] } = view;
    const left = new Set(usedPlaces(view.ledger).filter((place) => !instances.some((one) => isGoing(one, place))));
    return waiting.flatMap((task) => {
      const { startMs = 0, soloMs = 0 } = task;
      const isHopeless = at + graceMs + startMs + soloMs > deadlineAt(task);
      if (task.gpus > 1 || isHopeless) return [];
      const victims = [...left].flatMap((place) => victimsOn(place, task, view));
      const [victim] = victims.toSorted(
        (one, other) => one.lackingMiB - other.lackingMiB || other.startedAt - one.startedAt,
      );
      if (victim === undefined) return [];
      left.delete(victim.place);
      const reason = `gives way to ${task.id}, which has an SLO`;
      return [{ kind: 'retire' as const, instance: victim.instance.id, graceMs, reason }];
    });
  };
}

interface Victim {
  place: PlaceAccount;
  instance: InstanceState;
  startedAt: number;
  /** Memory that the task lacks there now, MiB. */
  lackingMiB: number;
}

function victimsOn(place: PlaceAccount, task: Task, { instances = [], runs }: View): Victim[] {
  const { id, availableMiB, mode, busy } = place;
  if (task.allowed?.has(id) === false) return [];
  const lackingMiB = neededMiB(task, place) - availableMiB;
  const isInTheWay = lackingMiB > 0 || (mode === 'exclusive' && busy > 0);
  if (!isInTheWay) return [];
  return instances.flatMap((instance) => {
    const [only, ...others] = instance.tasks;
    const run = only === undefined || others.length > 0 || !isOn(instance, place) ? undefined : runs(only);
    if (run === undefined || instance.gpus.length > 1 || neededMiB(instance, place) < lackingMiB) return [];
    if (run.task.sloMs !== undefined || run.task.mustNotStop === true) return [];
    return [{ place, instance, startedAt: run.startedAt, lackingMiB }];
  });
}

function isOn({ gpus }: InstanceState, { id }: PlaceAccount): boolean {
  return gpus.includes(id);
}

/** Whether room is being made on a GPU already. */
function isGoing(instance: InstanceState, place: PlaceAccount): boolean {
  return instance.state === 'draining' && isOn(instance, place);
}
