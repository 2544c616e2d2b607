// A function under load on instances that a scale stage launches and retires, each alone on its device.
import type { Scale } from '@gpuwhisk/gpu/scale/scale';
import type { InstanceState, ServedRates } from '@gpuwhisk/gpu/view/view';
import { latencyAt } from '../model/latency-surface.js';
import type { Load } from './loads.js';
import { Arrivals, taskOf, WaitingRequests } from './requests.js';
import type { ServedModel } from './served-models.js';

/** A way to deploy a function. Shares are fractions of the SMs. */
export interface Deployment {
  /** The share that a run has where nothing contends for the device. */
  share: number;
  /** The share that nothing else is guaranteed while the instance is there. */
  reserved: number;
  /** What the scale stage is told that an instance serves. */
  served: ServedRates;
  scale: Scale;
}

/** How a load was served. */
export interface Served {
  requests: number;
  /** Requests whose result came later than the SLO. */
  violations: number;
  /** Instances that were started, besides the first. */
  coldStarts: number;
  /** Time of instances, loading included: in all, times the reserved share, and of runs times their share, s. */
  deviceS: number;
  reservedS: number;
  usedS: number;
  /** Of each second: requests that came, those of them that were late, and instances at its end. */
  bySecond: { requests: Uint32Array; late: Uint32Array; instances: Uint32Array };
}

interface Instance {
  id: string;
  since: number;
  readyAt: number;
  /** Until when its present run lasts; Infinity: none runs. */
  busyUntil: number;
  idleSince: number;
  isLast: boolean;
}

const tickMs = 1000;

/**
 * Serves a load that begins with one idle instance. A free instance takes up to a batch of what waits: first requests that
 * can meet their SLO, by arrival, then the others. The stage is asked each second; a start takes `coldMs`; a request that
 * finds no instance starts one. Runs take what was measured for their batch and share, without noise.
 */
export function serve(model: ServedModel, { arrivals, lengthS }: Load, deployed: Deployment, coldMs: number): Served {
  const { batch, sloMs, surface } = model;
  const runMs = Array.from({ length: batch + 1 }, (_, size) =>
    size === 0 ? 0 : latencyAt(surface, size, deployed.share),
  );
  const fullMs = runMs[batch] ?? 0;
  const endMs = lengthS * 1000;
  const served: Served = {
    requests: arrivals.length,
    violations: 0,
    coldStarts: 0,
    deviceS: 0,
    reservedS: 0,
    usedS: 0,
    bySecond: {
      ...{ requests: new Uint32Array(lengthS), late: new Uint32Array(lengthS), instances: new Uint32Array(lengthS) },
    },
  };
  const { bySecond } = served;
  const countOne = (column: Uint32Array, at: number): void => {
    const second = Math.min(lengthS - 1, Math.floor(at / 1000));
    column[second] = (column[second] ?? 0) + 1;
  };
  const isLate = (arrivedAt: number): void => {
    served.violations += 1;
    countOne(bySecond.late, arrivedAt);
  };
  const counts = new Arrivals(lengthS);
  const waiting = new WaitingRequests();
  let now = 0;
  let instances: Instance[] = [];
  let made = 0;
  const start = (at: number, readyAt: number): void => {
    made += 1;
    instances.push({ id: `i${made}`, since: at, readyAt, busyUntil: Infinity, idleSince: readyAt, isLast: false });
  };
  const end = (one: Instance, at: number): void => {
    instances = instances.filter((other) => other !== one);
    served.deviceS += Math.max(0, Math.min(at, endMs) - one.since) / 1000;
  };
  const coldStart = (at: number): void => {
    served.coldStarts += 1;
    start(at, at + coldMs);
  };
  const hasNone = (): boolean => instances.every(({ isLast }) => isLast);

  start(0, 0);
  let next = 0;
  let nextTick = tickMs;
  for (;;) {
    let at = Math.min(arrivals[next] ?? Infinity, nextTick <= endMs ? nextTick : Infinity);
    for (const { busyUntil, readyAt } of instances) at = Math.min(at, busyUntil, readyAt > now ? readyAt : Infinity);
    if (at === Infinity) break;
    now = at;
    for (const one of instances) {
      if (one.busyUntil > at) continue;
      one.busyUntil = Infinity;
      one.idleSince = at;
      if (one.isLast) end(one, at);
    }
    for (; next < arrivals.length && (arrivals[next] as number) <= at; next += 1) {
      counts.add(at);
      countOne(bySecond.requests, at);
      waiting.push(arrivals[next] as number);
      if (hasNone()) coldStart(at);
    }
    if (at === nextTick) {
      nextTick += tickMs;
      bySecond.instances[at / 1000 - 1] = instances.length;
      const { launch, retire } = deployed.scale({
        ...{ at, gpus: [], waiting: [] },
        functions: [{ task: taskOf(model), arrivals: counts, served: deployed.served }],
        instances: instances.map((one) => stateOf(one, model, deployed, at)),
      });
      for (const { count } of launch) for (let more = 0; more < count; more += 1) coldStart(at);
      for (const { instance } of retire) {
        const one = instances.find(({ id }) => id === instance);
        if (one === undefined) continue;
        if (one.busyUntil === Infinity) end(one, at);
        else one.isLast = true;
      }
    }
    waiting.demote(at, fullMs, sloMs);
    for (const one of instances) {
      if (one.readyAt > at || one.busyUntil !== Infinity || waiting.size === 0) continue;
      const size = Math.min(batch, waiting.size);
      const doneAt = at + (runMs[size] as number);
      for (let taken = 0; taken < size; taken += 1) {
        const arrivedAt = waiting.take();
        if (doneAt - arrivedAt > sloMs) isLate(arrivedAt);
      }
      one.busyUntil = doneAt;
      served.usedS += ((doneAt - at) * deployed.share) / 1000;
    }
  }
  while (waiting.size > 0) isLate(waiting.take());
  for (const one of instances) end(one, endMs);
  served.reservedS = served.deviceS * deployed.reserved;
  return served;
}

function stateOf(one: Instance, { name }: ServedModel, { share, reserved }: Deployment, at: number): InstanceState {
  const { id, readyAt, busyUntil, idleSince, isLast } = one;
  const runs = busyUntil !== Infinity;
  const state = readyAt > at ? 'loading' : isLast ? 'draining' : runs ? 'running' : 'idle';
  return {
    ...{ id, function: `/bench/${name}`, namespace: 'bench', gpus: [id], memoryMiB: 0, tasks: runs ? ['run'] : [] },
    share: { request: reserved, limit: share, class: share },
    state,
    ...(state === 'idle' && { idleSince }),
  };
}
