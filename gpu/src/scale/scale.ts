import type { FunctionState, View } from '../view/view.js';

/** Instances that a function should have more of, and those that should go. */
export interface Scaling {
  launch: readonly { of: FunctionState; count: number; reason: string }[];
  retire: readonly { instance: string; reason: string }[];
}

/** The stage that says, every second, which instances functions should have. Where a launch goes is another matter. */
export type Scale = (view: View) => Scaling;
