import type { Action, ObservedRun, Sharing, Start, TaskRejection } from '../../view/decision.js';
import type { InstancePlacesIn } from '../place/bind.js';
import type { SchedulingEvent, Task, View } from '../../view/view.js';

/** Input of a planner. */
export interface Pass {
  view: View;
  /** Those of the view that were admitted. */
  tasks: readonly Task[];
  event: SchedulingEvent;
}

/** Where admitted tasks start now, and in which order the others wait. */
export interface Planned {
  starts: readonly Start[];
  order: readonly string[];
  rejected: readonly TaskRejection[];
  /** As in Decision. */
  sharings?: readonly Sharing[];
  /** As in Decision: shares that move. */
  actions?: readonly Action[];
  /** As in Decision: when to ask again though nothing happens, on the clock of the view, ms; absent: no particular time. */
  wakeAt?: number;
}

/** Stands for the stages order, place and share where an algorithm decides them together. */
export interface Planner {
  plan(pass: Pass): Planned;
  /** As in Policy. */
  readonly moves?: boolean;
  /** As in Order. */
  readonly gathers?: true;
  /** Where instances go that are launched ahead of requests; absent: where the least is given away. */
  readonly instancePlacesIn?: InstancePlacesIn;
  /** Learns from a run. */
  observe?(run: ObservedRun): void;
  /** A start of its plan did not come to be. */
  returned?(task: string): void;
  /** Plain data that its decisions depend on besides the view; absent: there is none. */
  saved?(): unknown;
  /** Takes what `saved` of a planner of the same kind gave. */
  restore?(saved: unknown): void;
}
