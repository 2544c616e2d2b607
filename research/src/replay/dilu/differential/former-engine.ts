// The former engine of Dilu's co-scaling, kept only as the other side of the differential: nothing else may use it.
import { diluScale, diluScaleDefaults } from '@gpuwhisk/gpu/algorithms/dilu/scale';
import { ArrivalCounts } from '@gpuwhisk/gpu/view/function-log';
import type { InstanceState, Task } from '@gpuwhisk/gpu/view/view';
import { latencyAt } from '../../model/latency-surface.js';
import { ratePerS, violationsOf, type Played, type Trace, type TracedFunction } from './trace.js';

/** The rules by which the simulator under `dilu` differs. The former engine takes over those that it is given. */
export const rules = {
  bind:
    'A request of a function with batches begins alone in an instance that idles, or else joins the one with the fewest, up to ' +
    'two batches. In the former engine a free instance took up to a batch of what waited.',
  tick:
    'The queue is looked at when requests come or end and when their SLO passes, and not at ticks: an instance that is ready ' +
    'at a tick is used from the next of these events on.',
} as const;

export type Rule = keyof typeof rules;

interface Instance {
  id: string;
  /** Requests that gather in it. */
  gathered: number[];
  /** Requests that run in it. */
  running: number;
  readyAt: number;
  /** Until when its present run lasts; Infinity: none runs. */
  busyUntil: number;
  idleSince: number;
  isLast: boolean;
}

const tickMs = 1000;

/**
 * Serves a trace that begins with one idle instance, each instance alone on its GPU. A free instance takes up to a batch of
 * what waits: first requests that can meet their SLO, by arrival, then the others. The stage is asked each second; a start
 * takes `coldMs`; a request that finds no instance starts one.
 */
export function playFormer(
  served: TracedFunction,
  { arrivals, lengthS, coldMs }: Trace,
  taken: ReadonlySet<Rule> = new Set(),
): Played {
  const { batch, sloMs, surface, request, limit } = served;
  const runMs = Array.from({ length: batch + 1 }, (_, size) => (size === 0 ? 0 : latencyAt(surface, size, limit)));
  const fullMs = runMs[batch] ?? 0;
  const endMs = lengthS * 1000;
  const scale = diluScale(diluScaleDefaults);
  const rates = { request: ratePerS(served, request), limit: ratePerS(served, limit) };
  const requests = Array.from(arrivals, () => ({ startedAt: NaN, endedAt: NaN }));
  const [launches, retirements]: [number[], number[]] = [[], []];
  const counts = new ArrivalCounts();
  const dueOf = (id: number): number => (arrivals[id] as number) + sloMs;
  /** Requests by arrival, and those that cannot meet their SLO any more. */
  const inTime: number[] = [];
  const late: number[] = [];
  /** Requests that wait no more. */
  const left = new Set<number>();
  let instances: Instance[] = [];
  let made = 0;
  const start = (readyAt: number): void => {
    made += 1;
    const idle = { busyUntil: Infinity, idleSince: readyAt, isLast: false, gathered: [], running: 0 };
    instances.push({ id: `i${made}`, readyAt, ...idle });
  };
  const coldStart = (at: number): void => {
    launches.push(at);
    start(at + coldMs);
  };
  const begin = (one: Instance, batched: readonly number[], at: number): void => {
    one.busyUntil = at + (runMs[batched.length] as number);
    one.running = batched.length;
    for (const id of batched) requests[id] = { startedAt: at, endedAt: one.busyUntil };
  };
  start(0);
  let now = 0;
  let next = 0;
  let nextTick = tickMs;
  /** The first request whose SLO has not passed, and which waits. */
  let nextDue = 0;
  for (;;) {
    while (nextDue < next && (left.has(nextDue) || dueOf(nextDue) <= now)) nextDue += 1;
    const dueAt = taken.has('tick') && nextDue < next ? dueOf(nextDue) : Infinity;
    let at = Math.min(arrivals[next] ?? Infinity, nextTick <= endMs ? nextTick : Infinity);
    for (const { busyUntil, readyAt } of instances) at = Math.min(at, busyUntil, readyAt > now ? readyAt : Infinity);
    at = Math.min(at, dueAt);
    if (at === Infinity) break;
    now = at;
    let isOnlyTick = at < dueAt;
    for (const one of instances) {
      if (one.busyUntil > at) continue;
      isOnlyTick = false;
      one.busyUntil = Infinity;
      one.idleSince = at;
      one.running = 0;
      if (one.isLast && one.gathered.length === 0) instances = instances.filter((other) => other !== one);
    }
    for (; next < arrivals.length && (arrivals[next] as number) <= at; next += 1) {
      isOnlyTick = false;
      counts.add(at);
      inTime.push(next);
      if (instances.every(({ isLast }) => isLast)) coldStart(at);
    }
    if (at === nextTick) {
      nextTick += tickMs;
      const { launch, retire } = scale({
        ...{ at, waiting: [] },
        functions: [{ task: taskOf(served), arrivals: counts, served: rates }],
        instances: instances.map((one) => stateOf(one, served, at)),
      });
      for (const { count } of launch) for (let more = 0; more < count; more += 1) coldStart(at);
      for (const { instance } of retire) {
        const one = instances.find(({ id }) => id === instance);
        if (one === undefined) continue;
        retirements.push(at);
        if (one.busyUntil === Infinity && one.gathered.length === 0)
          instances = instances.filter((other) => other !== one);
        else one.isLast = true;
      }
    }
    const isLate = (id: number): boolean => dueOf(id) < at + fullMs;
    while (inTime.length > 0 && isLate(inTime[0] as number)) late.push(inTime.shift() as number);
    const waits = (): number => inTime.length + late.length;
    const take = (): number => {
      const id = (inTime.shift() ?? late.shift()) as number;
      left.add(id);
      return id;
    };
    const isFree = ({ readyAt, busyUntil }: Instance): boolean => readyAt <= at && busyUntil === Infinity;
    for (const one of instances) {
      if (isFree(one) && one.gathered.length > 0) begin(one, one.gathered.splice(0, batch), at);
    }
    if (taken.has('tick') && isOnlyTick) continue;
    if (taken.has('bind') && batch > 1) {
      const users = (one: Instance): number => one.gathered.length + one.running;
      const ready = instances.filter(({ readyAt }) => readyAt <= at);
      while (waits() > 0) {
        const open = ready.filter((one) => users(one) < 2 * batch);
        const [first] = open.toSorted((one, other) => users(one) - users(other));
        if (first === undefined) break;
        if (users(first) > 0) first.gathered.push(take());
        else begin(first, [take()], at);
      }
      continue;
    }
    for (const one of instances) {
      if (isFree(one) && waits() > 0) begin(one, Array.from({ length: Math.min(batch, waits()) }, take), at);
    }
  }
  return { requests, launches, retirements, svr: violationsOf(arrivals, requests, sloMs) };
}

function taskOf({ batch, sloMs }: TracedFunction): Task {
  const identity = { id: 'f', function: '/bench/f', version: '1', namespace: 'bench' };
  return { ...identity, batch, gpus: 1, memoryMiB: 0, arrivedAt: 0, sloMs, class: 'inference' };
}

function stateOf(one: Instance, { request, limit }: TracedFunction, at: number): InstanceState {
  const { id, readyAt, busyUntil, idleSince, isLast } = one;
  const runs = busyUntil !== Infinity;
  const state = readyAt > at ? 'loading' : isLast ? 'draining' : runs ? 'running' : 'idle';
  return {
    ...{ id, function: '/bench/f', namespace: 'bench', gpus: [id], memoryMiB: 0, tasks: runs ? ['run'] : [] },
    share: { request, limit, class: limit },
    state,
    ...(state === 'idle' && { idleSince }),
  };
}
