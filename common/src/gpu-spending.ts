import type { ClusterState, WindowCounters } from './state/cluster-state.js';

/**
 * What each namespace (its name) has had of GPUs in the calendar minute, in ms of a whole GPU: a run with half of one for a
 * second is 500. Agents count it, controllers hold it against the limit `gpuSecondsPerMinute`.
 */
export function gpuSpendingCounters(state: ClusterState): WindowCounters {
  return state.windowCounters('gpuSpentMs', 60_000);
}
