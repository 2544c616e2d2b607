// The stage `procure`: its interface, and the rule that rents nothing.
import type { Action } from '../../view/decision.js';
import type { View } from '../../view/view.js';

/** An action on a node. */
export type NodeAction = Extract<Action, { kind: 'acquire' | 'give-back' }>;

/**
 * The stage that says which nodes to take and which to give back. It is asked each minute, after a notice, and after the
 * answer of a provider.
 */
export type Procure = (view: Pick<View, 'at' | 'nodes' | 'procurement'>) => readonly NodeAction[];

/** Nodes are added and removed by hand. */
export const noProcurement: Procure = () => [];
