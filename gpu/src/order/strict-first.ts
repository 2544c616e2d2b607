import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/** Those with an SLO before all others, as they came. */
export const strictFirst = comparing((one, other) => Number(isStrict(other)) - Number(isStrict(one)));

function isStrict({ sloMs }: Task): boolean {
  return sloMs !== undefined;
}
