import type { Task, View } from '../view/view.js';

/** The tasks that a policy is to order. */
export interface Admitted {
  tasks: readonly Task[];
  /** Tasks that cannot meet their SLO, with the reason: they go on as best effort, or are refused. */
  hopeless: ReadonlyMap<string, string>;
}

/** The stage that tells which tasks can still meet their SLO. */
export type Admit = (view: View) => Admitted;
