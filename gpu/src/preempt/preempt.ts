// The stage `preempt`: its interface, and the rule that stops nothing.
import type { Action } from '../view/decision.js';
import type { Task, View } from '../view/view.js';

/** The stage that says what gives way to tasks with an SLO that found no place (`waiting`, the next one first). */
export type Preempt = (view: View, waiting: readonly Task[]) => readonly Action[];

/** What runs, runs to its end. */
export const noPreemption: Preempt = () => [];
