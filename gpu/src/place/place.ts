// The stage `place`: its interface, and the scores that are one expression.
import { hashOf } from '../numeric/hash.js';
import type { PlacementChoice, PlacementRequest } from '../view/account.js';
import type { Ledger } from '../view/ledger.js';
import type { Task, View } from '../view/view.js';
import type { PlacementLimits, PlacementStamp } from './candidate.js';
import type { Refusal } from './fact-filters.js';
import type { GpuAccount } from './gpu-account.js';

/** A GPU with the tasks that run there or were placed there in this decision. */
export interface CandidateGpu extends GpuAccount {
  residents: { task: Task; share: number }[];
}

/** The share that a GPU would give a task. */
export interface Grant {
  /** Its limit: fraction of the SMs, 0 < share ≤ 1. */
  share: number;
  /** The share that it always gets on demand, at most `share`; absent: its limit. */
  request?: number;
  /** By how much that is less than the task should have. */
  lacks: number;
}

/** Scores a GPU that has memory and a share for a task: the lowest score wins. Or tells why the task may not run there. */
export type Score = (task: Task, candidate: CandidateGpu, grant: Grant) => number | Refusal;

/** The stage that chooses the GPU: the scores of one decision. */
export type Place = (view: View) => Score;

/** A task that a pass is to place, in its turn. */
export interface Waiting {
  task: Task;
  /** It asks for no place before this time, ms; absent: now. */
  waitsUntil?: number;
}

/** A stage that chooses the places in the ledger, whose indexes it needs: it holds nothing. */
export interface LedgerPlace {
  /** `task`: the one that asks. */
  placeIn(
    ledger: Ledger,
    request: PlacementRequest,
    limits: PlacementLimits,
    stamp: PlacementStamp,
    task: Task,
  ): PlacementChoice;
  /** The stage in the state of one pass over `turns`; absent: it has none. */
  prepare?(ledger: Ledger, turns: readonly Waiting[]): LedgerPlace;
  /** Plain data that its choices depend on besides the ledger; absent: there is none. */
  saved?(): unknown;
  /** Takes what `saved` of a stage of the same kind gave. */
  restore?(saved: unknown): void;
}

/** How instances are placed in a ledger: what a task asks of a place, and the choice of the place. */
export interface Placing extends LedgerPlace {
  /** Or why the task gets no share of an empty place. */
  requestOf(task: Task, ledger: Ledger, at: number): PlacementRequest | Refusal;
}

/** Shares are sums of tenths, which floating point does not hold exactly. */
export const rounding = 1e-9;

/** Whether a GPU has `share` of its SMs to give away. */
export function hasShare({ load }: GpuAccount, share: number): boolean {
  return load + share <= 1 + rounding;
}

/** The first one. */
export const firstFit: Place = () => () => 0;

/** The GPU that keeps the least of its SMs free; GPUs that grant less than the wanted share come last. */
export const bestFit: Place =
  () =>
  (_, { load }, { share, lacks }) =>
    lacks > 0 ? 1 + lacks : 1 - load - share;

/** Where the fewest run. */
export const fewestTasks: Place =
  () =>
  (_, { busy }) =>
    busy;

/**
 * An empty GPU first; then for a task with an SLO the GPU whose resident has the smallest share, and for others the GPU that
 * grants the largest one (TGS, Wu and others, NSDI 2023).
 */
export const mostGiven: Place =
  () =>
  ({ sloMs }, { residents: [first] }, { share }) => {
    if (first === undefined) return 0;
    return sloMs === undefined ? 2 - share : first.share;
  };

/** Any one, at random: a hash of task and GPU, so that a repeated decision is the same. */
export const atRandom: Place =
  () =>
  ({ id }, { gpu }) =>
    hashOf(`${id} ${gpu.id}`) / 2 ** 32;
