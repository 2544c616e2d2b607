import type { InstanceState } from '../view/view.js';
import type { Scale } from './scale.js';

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
