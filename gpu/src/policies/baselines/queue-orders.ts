import type { Task } from '../policy.js';
import { hasShare } from './greedy.js';
import type { GreedyRule } from './greedy.js';
import { fillingShare } from './solo-time.js';

/**
 * One order of the queue, and for each task the smallest share class that holds the SMs that it uses alone, on the
 * fullest GPU that has as much left: no order is held back by a poorer placement than the others'.
 */
function inOrder(name: string, compare: (a: Task, b: Task) => number): GreedyRule {
  return {
    name,
    compare,
    offer(task, seat) {
      const share = task.share ?? fillingShare(task);
      return hasShare(seat, share) ? { share, cost: 1 - seat.load - share } : 'its SMs are given away';
    },
  };
}

/** First come, first served (FaaShare, figure 2: the default). */
export const fcfs = inOrder('fcfs', (a, b) => a.arrivedAt - b.arrivedAt);

/** The shortest first (FaaShare, section IX-A: PT). One that has not been measured goes last. */
export const timePriority = inOrder('time-priority', (a, b) => lengthMs(a) - lengthMs(b));

/** The least memory first (FaaShare, section IX-A: PM). */
export const memoryPriority = inOrder('memory-priority', (a, b) => needMiB(a) - needMiB(b));

function lengthMs({ soloMs }: Task): number {
  return soloMs ?? Number.MAX_VALUE;
}

function needMiB({ memoryMiB }: Task): number {
  return memoryMiB > 0 ? memoryMiB : Number.MAX_VALUE;
}
