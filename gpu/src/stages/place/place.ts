// The stage `place`: its interface, and the scores that are one expression.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { PlaceAccount, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { Task, View } from '../../view/view.js';
import type { PlacementLimits, PlacementStamp } from './candidate.js';
import type { Refusal } from './fact-filters.js';

/** A place with the tasks that run there or were placed there in this pass. */
export interface CandidatePlace {
  account: PlaceAccount;
  kind: GpuKind;
  residents: readonly { task: Task; share: number }[];
}

/** The share that a place would give a task. */
export interface Grant {
  /** Its limit: fraction of the SMs, 0 < share ≤ 1. */
  share: number;
  /** The share that it always gets on demand, at most `share`; absent: its limit. */
  request?: number;
  /** By how much that is less than the task should have. */
  lacks: number;
}

/** Scores a place that has memory and a share for a task: the lowest score wins. Or tells why the task may not run there. */
export type Score = (task: Task, candidate: CandidatePlace, grant: Grant) => number | Refusal;

/** What a pass knows of the cluster. */
export type PassView = Pick<View, 'at' | 'ledger' | 'runs' | 'workloads'>;

/** The scores of one pass. */
export type Scores = (view: PassView) => Score;

/** A task that a pass is to place, in its turn. */
export interface Waiting {
  task: Task;
  /** It asks for no place before this time, ms; absent: now. */
  waitsUntil?: number;
}

/** Chooses the place of a request in the ledger of a pass, and holds nothing. `task`: the one that asks. */
export type PlaceIn = (
  request: PlacementRequest,
  limits: PlacementLimits,
  stamp: PlacementStamp,
  task: Task,
) => PlacementChoice;

/** The stage that chooses places in the ledger. */
export interface LedgerPlace {
  /** The search of one pass over `turns`. */
  begin(pass: PassView, turns: readonly Waiting[]): PlaceIn;
  /** Plain data that its choices depend on besides the ledger; absent: there is none. */
  saved?(): unknown;
  /** Takes what `saved` of a stage of the same kind gave. */
  restore?(saved: unknown): void;
}

/** How instances are placed in a ledger: what a task asks of a place, and the choice of the place. */
export interface Placing extends LedgerPlace {
  /** Choices depend on more of a task than its request; absent: equal requests that find no place need not be tried again. */
  readonly judgesTasks?: true;
  /** Or why the task gets no share of an empty place. */
  requestOf(task: Task, ledger: Ledger, at: number): PlacementRequest | Refusal;
}

/** Shares are sums of tenths, which floating point does not hold exactly. */
export const rounding = 1e-9;

/** Whether a place has `share` of its SMs to give away. */
export function hasShare({ account: { load } }: CandidatePlace, share: number): boolean {
  return load + share <= 1 + rounding;
}

/** The first one. */
export const firstFit: Scores = () => () => 0;

/** The GPU that keeps the least of its SMs free; GPUs that grant less than the wanted share come last. */
export const bestFit: Scores =
  () =>
  (_, { account: { load } }, { share, lacks }) =>
    lacks > 0 ? 1 + lacks : 1 - load - share;

/** Where the fewest run. */
export const fewestTasks: Scores =
  () =>
  (_, { account }) =>
    account.busy;
