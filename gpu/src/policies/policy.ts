import type { Decision, ObservedRun } from '../view/decision.js';
import type { SchedulingEvent, View } from '../view/view.js';

/** Decides which tasks run where and with what share. It reads no clock and draws no randomness of its own. */
export interface Policy {
  readonly name: string;
  /** It is asked each second (`tick`) which instances functions should have; absent: it is not. */
  readonly scales?: boolean;
  /** What is decided counts at once: the next view has the starts among what runs. */
  decide(view: View, event: SchedulingEvent): Decision;
  /** Learns from a run; absent in a policy that learns nothing. */
  observe?(run: ObservedRun): void;
  /** A start that it has decided did not come to be. */
  returned?(task: string): void;
  /** Plain data that its decisions depend on besides the view; undefined: there is none. */
  saved?(): unknown;
  /** Takes what `saved` of a policy of the same stages gave. */
  restore?(saved: unknown): void;
}
