// PROTEAN's scaling (paper, section 4.2): one instance for each batch, and delayed termination.
import type { FunctionState, InstanceState, Task } from '../../view/view.js';
import { idleMs } from '../../stages/scale/scale.js';
import type { Scale, Scaling } from '../../stages/scale/scale.js';
import { keyOf, stayingInstances } from '../../stages/scale/wanted.js';

/** Settings of `protean`. */
export const proteanScaleDefaults = {
  /** An instance goes once as many were too many for so long, s. */
  surplusS: 600,
};

/** Surplus of a function's instances over time: looks with rising counts, the first of which is the least of the time. */
interface Surplus {
  /** Since when it has been watched without a gap, ms. */
  from: number;
  /** When it was looked at last, ms. */
  seen: number;
  least: { at: number; count: number }[];
}

/** A look that comes later than this after the one before leaves a gap, ms. */
const longestGapMs = 10_000;

/**
 * Wants ⌈requests / batch⌉ instances of each function: of the requests that wait and run, or of those that arrive while one runs
 * at the last second's rate, whichever are more. An instance is retired once a surplus has lasted for `surplusS`: the one that has
 * idled longest. The time of a surplus begins again where ticks were missed or the clock was set back.
 */
export function proteanScale({ surplusS }: typeof proteanScaleDefaults): Scale {
  const watched = new Map<string, Surplus>();
  return (view) => {
    const { at, functions = [] } = view;
    const staying = stayingInstances(view);
    const waiting = requestsByFunction(view.waiting);
    const launch: Scaling['launch'][number][] = [];
    const retire: Scaling['retire'][number][] = [];
    const look = (key: string, there: readonly InstanceState[], wanted: number): void => {
      const idle = there
        .filter(({ state }) => state === 'idle')
        .sort((one, other) => idleMs(other, at) - idleMs(one, at));
      const gone = surplusOf(watched, key, {
        count: there.length - wanted,
        most: idle.length,
        at,
        lastsMs: surplusS * 1000,
      });
      const reason = `more than the ${wanted} that its requests call for, for ${surplusS} s`;
      for (const { id } of idle.slice(0, gone)) retire.push({ instance: id, reason });
    };
    for (const of of functions) {
      const key = keyOf(of.task);
      const there = staying.get(key) ?? [];
      staying.delete(key);
      const wanted = instancesFor(of, there, waiting.get(key) ?? 0, at);
      if (wanted > there.length) {
        launch.push({
          of,
          count: wanted - there.length,
          reason: `${wanted} wanted for its batches, ${there.length} there`,
        });
      }
      look(key, there, wanted);
    }
    // No requests are known of functions that are not in the view.
    for (const [key, there] of staying) look(key, there, there.filter(({ tasks }) => tasks.length > 0).length);
    for (const [key, { seen }] of watched) if (seen !== at) watched.delete(key);
    return { launch, retire };
  };
}

/** Requests that wait, by the key of their function; a task that is a whole batch counts as one of as many requests. */
function requestsByFunction(waiting: readonly Task[]): Map<string, number> {
  const byFunction = new Map<string, number>();
  for (const task of waiting) {
    const key = keyOf(task);
    byFunction.set(key, (byFunction.get(key) ?? 0) + (task.request === undefined ? task.batch : 1));
  }
  return byFunction;
}

function instancesFor(
  { task, arrivals, runMs = task.soloMs ?? 0 }: FunctionState,
  there: readonly InstanceState[],
  waiting: number,
  at: number,
): number {
  // Where tasks are whole batches, each counts as one.
  const each = task.request === undefined ? task.batch : 1;
  const running = there.reduce((sum, { tasks }) => sum + tasks.length * each, 0);
  const lastSecond = (arrivals.bySecond(at).at(-2) ?? 0) * each;
  const arriving = runMs > 0 && Number.isFinite(runMs) ? (lastSecond * runMs) / 1000 : 0;
  return Math.ceil(Math.max(waiting + running, arriving) / Math.max(1, task.batch));
}

/** A surplus at a time, ms; `most` of these instances may go now. */
interface Look {
  count: number;
  most: number;
  at: number;
  /** How long a surplus has to last, ms. */
  lastsMs: number;
}

/** Notes a surplus, and gives how many instances go as they were too many all the time. */
function surplusOf(watched: Map<string, Surplus>, key: string, { count, most, at, lastsMs }: Look): number {
  const known = watched.get(key);
  const isGap = known === undefined || at < known.seen || at - known.seen > longestGapMs;
  const now = isGap ? { from: at, seen: at, least: [] } : known;
  now.seen = at;
  watched.set(key, now);
  while ((now.least.at(-1)?.count ?? -Infinity) >= count) now.least.pop();
  now.least.push({ at, count });
  while ((now.least[0]?.at ?? at) < at - lastsMs) now.least.shift();
  const gone = at - now.from >= lastsMs ? Math.min(most, Math.max(0, now.least[0]?.count ?? 0)) : 0;
  if (gone > 0) now.least = now.least.map((one) => ({ ...one, count: one.count - gone }));
  return gone;
}
