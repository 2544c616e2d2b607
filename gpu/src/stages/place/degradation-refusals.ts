// Why a prediction refuses a place (SMORE, thesis equations 3.9 and 3.10).
import type { Refusal } from './fact-filters.js';
import type { Effect } from './set-effects.js';

/** What a place is judged by for a task. */
interface Judged {
  effect: Effect;
  /** Memory in use with the task there, and the most that may be, MiB. */
  usedMiB: number;
  mostMiB: number;
  /** Time of the task there with its start, and until its deadline, ms. */
  needMs: number;
  leftMs: number;
}

/** Why a place is refused; undefined if it is not. */
export function degradationRefusal({ effect, usedMiB, mostMiB, needMs, leftMs }: Judged): Refusal | undefined {
  if (usedMiB > mostMiB) {
    return { reason: 'too little memory would be left beside others', numbers: { usedMiB, mostMiB } };
  }
  const { suffers, beyond, bound } = effect;
  if (suffers) {
    return { reason: 'a workload is slower there than it tolerates, or has stopped reporting', numbers: {} };
  }
  if (beyond > 0) {
    const numbers = { degradation: beyond, bound };
    return { reason: 'a workload would become slower there than it tolerates', numbers };
  }
  return needMs > leftMs ? { reason: 'it would miss its deadline there', numbers: { needMs, leftMs } } : undefined;
}

/**
 * The most memory that may be in use (equation 3.9), MiB: the reserve is for what several processes lose to each other, so that
 * one alone may take all that there is.
 */
export function mostMemory(
  { capacityMiB, staying, workloads }: { capacityMiB: number; staying: readonly unknown[]; workloads: number },
  memoryPart: number,
): number {
  return staying.length === 0 && workloads === 0 ? Infinity : memoryPart * capacityMiB;
}

/** Time of a task with its start (0: it is warm) where it gets slower by `own` (D), ms; 0 if its time alone is not known. */
export function neededMs(soloMs: number | undefined, own: number, startMs: number): number {
  return soloMs === undefined ? 0 : soloMs * (1 + own) + startMs;
}
