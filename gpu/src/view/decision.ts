// The result of a pass: starts, refusals and actions; and the measured runs that policies learn from.
import type { GpuKind, Rejection } from '@gpuwhisk/common/gpu';
import type { PlacementChoice } from '../ledger/account.js';
import type { Task, View } from './view.js';

/** A waiting task that starts now. */
export interface Start {
  task: string;
  gpu: string;
  /** The other GPUs of a task that needs several. */
  alsoOn?: readonly string[];
  /** Its limit: fraction of the GPU, 0 < share ≤ 1. */
  share: number;
  /** The share that it always gets on demand, fraction of the GPU, at most `share`; absent: its limit. */
  request?: number;
  /** Predicted time from now to its result, ms; absent where nothing is known of it. */
  predictedMs?: number;
  /** The reason for the choice of the GPU. */
  reason: string;
  /**
   * The placement that the policy holds in the ledger of its view, or why there is none; a plan leaves it out where it chooses
   * places only.
   */
  choice?: PlacementChoice;
}

/** How the tasks that start on a GPU together, or beside others, got their shares. */
export interface Sharing {
  gpu: string;
  /** Number of tasks that are on the GPU from now on: those that start and those that run there. */
  tasks: number;
  /**
   * The answer of the table of measured sets: this very set was measured (`hit`), a similar one was (`nearest`), or
   * predictions alone answer (`guardrail`). Absent: the table was not asked, as no share was open or there is no table.
   */
  answer?: 'hit' | 'nearest' | 'guardrail';
  /** The shares that the tasks get: the answer, shares fixed by the tasks' owners, or the shares that the tasks fill. */
  source: 'hit' | 'nearest' | 'guardrail' | 'owner' | 'filling';
  /** Sum over these tasks of the time from now to their ends with the chosen shares, ms: measured where the set was. */
  chosenMs: number;
  /** The same with the shares that the tasks fill, ms. */
  fillingMs: number;
}

/** Alternatives that a decision keeps of a task. */
export const mostRejections = 8;

/** Why a place that another task is to get is refused. */
export const keptForAnother: Pick<Rejection, 'reason' | 'numbers'> = {
  reason: 'kept for one that waits for longer',
  numbers: {},
};

/** Why a task was not placed on a GPU, or not on that one. */
export interface TaskRejection extends Rejection {
  task: string;
}

/** The result of a pass of a policy. A task that it does not name goes on waiting. */
export interface Decision {
  starts: readonly Start[];
  /** Tasks that will never run, with the reason; each is answered with an error. */
  refused: readonly { task: string; reason: string }[];
  /** Tasks that cannot meet their SLO and go on as best effort. */
  bestEffort: readonly string[];
  /** Tasks that go on waiting, the next one first. */
  order: readonly string[];
  /** At most `mostRejections` a task: first the GPUs that would have done, best first. */
  rejected: readonly TaskRejection[];
  /** Actions besides starts; absent: none. */
  actions?: readonly Action[];
  /** How tasks that are put together got their shares, an entry for each such GPU; absent: there is none, or the policy does not say. */
  sharings?: readonly Sharing[];
  /** When to ask again though nothing happens, on the clock of the view, ms; absent: no particular time. */
  wakeAt?: number;
}

/** The decision that changes nothing. */
export function allWait({ waiting }: Pick<View, 'waiting'>): Decision {
  return { starts: [], refused: [], bestEffort: [], order: waiting.map(({ id }) => id), rejected: [] };
}

/** A run that has ended, as it was measured. */
export interface ObservedRun {
  task: Task;
  gpu: { id: string } & GpuKind;
  share: number;
  /** From its start to its result without injection or a cold start, ms. */
  ranMs: number;
  /** When it ended, on the clock of the view, ms; absent: it is not told. */
  endedAt?: number;
  /** Its neighbours, each with the part of the run in which it was there; the part of several at once may exceed 1. */
  beside: readonly { task: Task; share: number; part: number }[];
}

/** A change that a policy wants besides starts. It lasts, and later views show it once it has come about. */
export type Action = { reason: string } & (
  | {
      /** Start an instance of a function on GPUs, and load its code, before a request comes. */
      kind: 'launch';
      /** As in Task: the function, and the namespace that it runs for. */
      function: string;
      namespace: string;
      /** By id; several of one node and alike where the function needs several. */
      gpus: readonly string[];
      /** Class that its process is started with, fraction of the SMs. */
      share: number;
      /** Request and limit until its first request: request ≤ limit ≤ `share`. Absent: `share`. */
      request?: number;
      limit?: number;
    }
  | {
      /** End an instance once nothing runs in it; a run that lasts `graceMs` from now on is stopped (absent: it is not). */
      kind: 'retire';
      instance: string;
      graceMs?: number;
    }
  | {
      /** Move an instance's request and limit, fractions of the SMs: request ≤ limit ≤ its class. */
      kind: 'reshare';
      instance: string;
      request: number;
      limit: number;
      /** Only until nothing runs in it, and the next task gets the share that it was decided; absent: it lasts. */
      whileBusy?: true;
    }
  | {
      /** Have a device cut into MIG instances of these profiles once those that go are empty; none: it is whole. */
      kind: 'cut';
      device: string;
      profiles: readonly string[];
    }
  | {
      /** Take one more node of this market. */
      kind: 'acquire';
      market: Market;
    }
  | {
      /** Give a node back once nothing runs there. */
      kind: 'give-back';
      node: string;
    }
);

/** How a node is paid for: at a lower price until it is taken away again, or for as long as it is wanted. */
export type Market = 'spot' | 'on-demand';

/** Carries actions out. Later views show their results. */
export interface Actuator {
  /**
   * Begins with an action; gives why it is refused, or undefined. An action on something that is not there is refused and
   * changes nothing. Rejects where the state of the cluster cannot be written, or another controller decides.
   */
  carryOut(action: Action): Promise<string | undefined>;
}
