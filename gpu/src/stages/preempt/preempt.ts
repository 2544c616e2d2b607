// The stage `preempt`: its interface, and the rule that stops nothing.
import type { Action } from '../../view/decision.js';
import type { SchedulingEvent, Task, View } from '../../view/view.js';

/**
 * The stage that says what gives way: to tasks with an SLO that found no place (`waiting`, the next one first), and each
 * second (`tick`), and when a workload reports that it suffers (`report`), to workloads.
 */
export type Preempt = (view: View, waiting: readonly Task[], event: SchedulingEvent) => readonly Action[];

/** What runs, runs to its end. */
export const noPreemption: Preempt = () => [];
