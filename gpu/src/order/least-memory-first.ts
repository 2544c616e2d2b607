import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/** The least memory first; one whose need is not known goes last. */
export const leastMemoryFirst = comparing((one, other) => needMiB(one) - needMiB(other));

function needMiB({ memoryMiB }: Task): number {
  return memoryMiB > 0 ? memoryMiB : Number.MAX_VALUE;
}
