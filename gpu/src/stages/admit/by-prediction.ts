import type { PredictionCache, SetPredictions } from '../order/set-predictions.js';
import { deadlineAt } from '../../view/view.js';
import { kindsOf } from '../../ledger/places.js';
import { takesWork, usedPlaces } from '../../ledger/used-places.js';
import type { OpenLedger } from '../../ledger/used-places.js';
import type { Task } from '../../view/view.js';
import type { Admit } from './admit.js';

/**
 * A task is hopeless if it is predicted to miss its SLO alone on the best of the GPUs; it goes on as best effort. Each task
 * is admitted once, and none that runs.
 */
export function byPrediction(predictions: PredictionCache): Admit {
  return ({ at, waiting, ledger, runs }) => {
    const models = kindsOf(usedPlaces(ledger)).map((kind) => predictions.of(kind));
    const seen = new Set<string>();
    const hopeless = new Map<string, string>();
    const tasks: Task[] = [];
    for (const given of waiting) {
      if (seen.has(given.id) || runs(given.id) !== undefined) continue;
      seen.add(given.id);
      const task = measured(given);
      if (task.sloMs === undefined) {
        tasks.push(task);
        continue;
      }
      const leftMs = deadlineAt(task) - Math.max(at, task.arrivedAt);
      const runMs = soonestMs(task, models);
      let needMs = runMs + (task.startMs ?? 0);
      if (needMs > leftMs && isWarm(task, ledger)) needMs = runMs;
      if (needMs <= leftMs) {
        tasks.push(task);
        continue;
      }
      hopeless.set(task.id, `it needs ${Math.ceil(needMs)} ms, and its SLO leaves ${Math.floor(leftMs)}`);
      tasks.push(without(task, 'sloMs'));
    }
    return { tasks, hopeless };
  };
}

/** Whether an instance of a task's function idles, in which it starts at once. */
function isWarm({ function: action, namespace }: Task, { ledger, isOpen }: OpenLedger): boolean {
  for (const { health, place } of ledger.withInstances({ action, namespace }, true)) {
    if (takesWork(health) && isOpen(place.node.invoker)) return true;
  }
  return false;
}

/** Time of a task alone on the best of the GPUs, ms; 0 where there is none, or it has not been measured. */
function soonestMs({ soloMs = 0, share = 1, features }: Task, models: readonly SetPredictions[]): number {
  if (models.length === 0) return 0;
  let least = Infinity;
  for (const model of models) least = Math.min(least, model.alone(features, share));
  return soloMs * least;
}

/** A time that is no time has not been measured. */
function measured(task: Task): Task {
  const { soloMs } = task;
  return soloMs === undefined || (soloMs > 0 && Number.isFinite(soloMs)) ? task : without(task, 'soloMs');
}

function without(task: Task, field: 'sloMs' | 'soloMs'): Task {
  const copy = { ...task };
  delete copy[field];
  return copy;
}
