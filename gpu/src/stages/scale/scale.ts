// The stage `scale`: its interface, and the rules that launch nothing ahead of requests.
import type { FunctionState, View, InstanceState } from '../../view/view.js';

/** What of a view scaling goes by. */
export type ScaledView = Pick<View, 'at' | 'waiting' | 'functions' | 'instances'>;

/** Instances that a function should have more of, and those that should go. */
export interface Scaling {
  launch: readonly { of: FunctionState; count: number; reason: string }[];
  retire: readonly { instance: string; reason: string }[];
}

/** The stage that says, every second, which instances functions should have. Where a launch goes is another matter. */
export interface Scale {
  (view: ScaledView): Scaling;
  /** Requests wait for the instances that their function has (`onInstances`); absent: each may start one. */
  readonly isLazy?: true;
}

/** Instances come with requests that find none, and go where the invokers remove them. */
export const noScaling: Scale = () => ({ launch: [], retire: [] });

/** Settings of `keepAlive`. */
export const keepAliveDefaults = {
  /** How long an instance may idle, s; OpenWhisk's default for an idle container. */
  keepAliveS: 600,
};

/** An instance goes once it has idled for so long, as serverless platforms have it; none is launched ahead. */
export function keepAlive({ keepAliveS }: typeof keepAliveDefaults): Scale {
  return ({ at, instances = [] }) => ({
    launch: [],
    retire: instances
      .filter((one) => idleMs(one, at) >= keepAliveS * 1000)
      .map(({ id }) => ({ instance: id, reason: `it has idled for ${keepAliveS} s` })),
  });
}

/** For how long an instance has idled, ms; 0 if it does not. */
export function idleMs({ state, idleSince }: InstanceState, at: number): number {
  return state === 'idle' && idleSince !== undefined ? at - idleSince : 0;
}
