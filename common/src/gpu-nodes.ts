// Nodes that come and go: announced ends, and the use of their GPUs.
import type { ClusterState, WindowCounters } from './state/cluster-state.js';

/** The ClusterState table of announced ends of nodes: NodeNotice rows by the invoker's topic. */
export const gpuNoticeTable = 'gpuNotices';

/** Time before the end of a node at which work stops there, ms: for records, and for the return of idempotent runs. */
export const departureMarginMs = 5000;

/** The announced end of a node: it gets only work that ends in time. */
export interface NodeNotice {
  /** `revoked`: its owner takes it away. `given-back`: the platform gives it back once nothing runs there. */
  why: 'revoked' | 'given-back';
  /** When the notice was made, epoch ms. */
  at: number;
  /** When the node will be taken away, epoch ms; absent: once nothing runs there. */
  leavesAt?: number;
}

/** The ClusterState table of the use of nodes: NodeUse rows by the invoker's topic. */
export const gpuUseTable = 'gpuUse';

/** The use of a node's GPUs since its agent was started. All counts only grow. */
export interface NodeUse {
  /** Differs with each start of the agent. */
  start: string;
  /** Epoch ms. */
  at: number;
  /** How long the agent has run, ms of a clock that is never set. */
  upMs: number;
  devices: number;
  market?: 'spot' | 'on-demand';
  /** Price of the node, in the operator's currency. */
  pricePerHour?: number;
  /** Invocation namespace, action, and its use in ms of a whole GPU. */
  used: readonly (readonly [namespace: string, action: string, gpuMs: number])[];
}

/**
 * What each namespace (its name) has had of GPUs in the calendar minute, ms of a whole GPU: half of one for a second is 500.
 * Agents count it, controllers hold it against the limit `gpuSecondsPerMinute`.
 */
export function gpuSpendingCounters(state: ClusterState): WindowCounters {
  return state.windowCounters('gpuSpentMs', 60_000);
}
