import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/** Tasks with an SLO first, then by arrival. */
export const strictFirst = comparing((one, other) => Number(isStrict(other)) - Number(isStrict(one)));

function isStrict({ sloMs }: Task): boolean {
  return sloMs !== undefined;
}
