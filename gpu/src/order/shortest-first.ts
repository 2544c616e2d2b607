import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/** The shortest first; one that has not been measured goes last. */
export const shortestFirst = comparing((one, other) => lengthMs(one) - lengthMs(other));

function lengthMs({ soloMs }: Task): number {
  return soloMs ?? Number.MAX_VALUE;
}
