import { requestOfTask } from '../../view/requests.js';
import { deadlineAt } from '../../view/view.js';
import type { Task, View } from '../../view/view.js';
import type { Admit } from './admit.js';

/**
 * A task is hopeless once its latest start has passed: deadline minus its time alone, and minus the time of a start where no
 * instance of its function idles. A task that was never measured is hopeless once its deadline has passed.
 */
export const latestStart: Admit = (view) => {
  const hopeless = new Map<string, string>();
  const tasks = view.waiting.map((task): Task => {
    if (task.sloMs === undefined) return task;
    const leftMs = deadlineAt(task) - view.at;
    const needMs = neededMs(task, view);
    if (needMs <= leftMs) return task;
    hopeless.set(task.id, `it needs ${Math.ceil(needMs)} ms, and its SLO leaves ${Math.floor(leftMs)}`);
    const copy = { ...task };
    delete copy.sloMs;
    return copy;
  });
  return { tasks, hopeless };
};

function neededMs(task: Task, { ledger: { ledger } }: View): number {
  const { soloMs = 0, startMs = 0 } = task;
  const runMs = soloMs > 0 && Number.isFinite(soloMs) ? soloMs : 0;
  const isWarm = startMs > 0 && ledger.withInstances(requestOfTask(task), true).size > 0;
  return runMs + (isWarm ? 0 : startMs);
}
