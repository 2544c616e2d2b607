// A policy as the scheduler asks it.
import type { Decision, ObservedRun } from '../view/decision.js';
import type { SchedulingEvent, Task, View } from '../view/view.js';
import type { GeometryReport } from '../stages/geometry/geometry.js';

/** Decides which tasks run where and with what share. It reads no clock and draws no randomness of its own. */
export interface Policy {
  readonly name: string;
  /** It is asked each second (`tick`) which instances functions and which slices devices should have; absent: it is not. */
  readonly scales?: boolean;
  /** It is told when a workload suffers (`report`), though it does not scale; absent: it is not. */
  readonly protects?: boolean;
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
