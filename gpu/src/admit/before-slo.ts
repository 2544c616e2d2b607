import { deadlineAt } from '../view/view.js';
import type { Admit } from './admit.js';

/** A task that has waited for longer than its SLO cannot meet it. */
export const beforeSlo: Admit = ({ at, waiting }) => {
  const late = waiting.filter((task) => deadlineAt(task) < at);
  return { tasks: waiting, hopeless: new Map(late.map(({ id }) => [id, 'its SLO has passed'])) };
};
