import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/**
 * Tasks that can still meet their SLO alone on a GPU, by deadline; then the others, the shortest first (ElasticFlow, Gu and
 * others, ASPLOS 2023: best effort gets the remaining GPUs by marginal return).
 */
export const meetableFirst = comparing((one, other, at) => {
  const admitted = Number(canMeet(other, at)) - Number(canMeet(one, at));
  if (admitted !== 0) return admitted;
  return canMeet(one, at)
    ? one.arrivedAt + (one.sloMs ?? 0) - other.arrivedAt - (other.sloMs ?? 0)
    : (one.soloMs ?? Number.MAX_VALUE) - (other.soloMs ?? Number.MAX_VALUE);
});

function canMeet({ arrivedAt, sloMs, soloMs = 0, startMs = 0 }: Task, at: number): boolean {
  return sloMs !== undefined && at + startMs + soloMs <= arrivedAt + sloMs;
}
