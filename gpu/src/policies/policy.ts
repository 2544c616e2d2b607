// A policy as the scheduler asks it, and the record of stages that it is defined by.
import type { Decision, ObservedRun } from '../view/decision.js';
import type { SchedulingEvent, Task, View } from '../view/view.js';
import type { GeometryReport } from '../geometry/geometry.js';
import type { Settings, stages } from './stages.js';

/** Decides which tasks run where and with what share. It reads no clock and draws no randomness of its own. */
export interface Policy {
  readonly name: string;
  /** It is asked each second (`tick`) which instances functions and which slices devices should have; absent: it is not. */
  readonly scales?: boolean;
  /** It is asked which nodes to take and to give back (`procure`); absent: it is not. */
  readonly procures?: boolean;
  /** Where shares can be moved, it is asked about starts and ends even while nothing waits; absent: it is not. */
  readonly moves?: boolean;
  /** What is decided counts at once: the next view has the starts among what runs. */
  decide(view: View, event: SchedulingEvent): Decision;
  /**
   * Places for an instance of a task's function that is made ahead of requests, though others may have to go for it; none:
   * none will do. Undefined: where the least is given away.
   */
  placesForInstance?(view: View, task: Task): readonly string[] | undefined;
  /** Learns from a run; absent in a policy that learns nothing. */
  observe?(run: ObservedRun): void;
  /** A start that it has decided did not come to be. */
  returned?(task: string): void;
  /** State of its stage geometry; undefined: that has none. */
  geometry?(): GeometryReport | undefined;
  /** Plain data that its decisions depend on besides the view; undefined: there is none. */
  saved?(): unknown;
  /** Takes what `saved` of a policy of the same stages gave. */
  restore?(saved: unknown): void;
}

type Name<Stage extends keyof typeof stages> = keyof (typeof stages)[Stage];

/** Stages that decide one after the other, or what stands for them. */
type Deciding = { plan: Name<'plan'> } | { order: Name<'order'>; share: Name<'share'>; place: Name<'place'> };

/** A policy: the implementation of each of its stages. */
export type PolicyRecord = Deciding & {
  /** One line. */
  summary: string;
  admit: Name<'admit'>;
  /** Absent, as the next three: none. */
  preempt?: Name<'preempt'>;
  scale?: Name<'scale'>;
  procure?: Name<'procure'>;
  geometry?: Name<'geometry'>;
  /** Settings of its stages; absent: the defaults of the stages. */
  settings?: Settings;
  /** It uses no measurements of functions, so that no samples are run for it. */
  needsNoProfiles?: boolean;
  /** A task that arrives while the queue is empty is placed at once, not together with others of the same moment. */
  takesAsTheyCome?: boolean;
};
