// The stage `admit`: its interface, and the rules that need no prediction.
import type { Task, View } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';

/** The tasks that a policy is to order. */
interface Admitted {
  tasks: readonly Task[];
  /** Tasks that cannot meet their SLO, with the reason: they go on as best effort, or are refused. */
  hopeless: ReadonlyMap<string, string>;
}

/** The stage that tells which tasks can still meet their SLO. */
export type Admit = (view: View) => Admitted;

/** Admits every task, late or not. */
export const always: Admit = ({ waiting }) => ({ tasks: waiting, hopeless: new Map() });

/** A task that has waited for longer than its SLO cannot meet it. */
export const beforeSlo: Admit = ({ at, waiting }) => {
  const late = waiting.filter((task) => deadlineAt(task) < at);
  return { tasks: waiting, hopeless: new Map(late.map(({ id }) => [id, 'its SLO has passed'])) };
};
