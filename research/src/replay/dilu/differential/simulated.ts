// The trace in the platform's simulator under policy `dilu`.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy, type PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { replay, type GpuTruth, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import { latencyAt } from '../../model/latency-surface.js';
import { violationsOf, type Played, type Trace, type TracedFunction } from './trace.js';

const gpuType = 'a100-40';
const mode = 'mps';
const identity = { function: '/bench/f', version: '1', namespace: 'bench' } as const;
/** More than half of a GPU, so that each instance is alone on its own, as in the former engine. */
const memoryMiB = 24 * 1024;
const gpu = { type: gpuType, mode, memoryMiB: 38 * 1024 } as const;
const gpus = 24;

/** Plays a trace that begins with one idle instance. Throws Error if requests wait for ever. */
export function simulate(served: TracedFunction, trace: Trace, choice: PolicyChoice = 'dilu'): Played {
  const { arrivals, lengthS, coldMs } = trace;
  const soloMs = latencyAt(served.surface, 1, 1);
  const jobs = Array.from(arrivals, (arrivedAt, at) => jobOf(served, at, { arrivedAt, soloMs, coldMs }));
  const policy = makePolicy(choice, {
    predictorOf: () => capacityModel,
    random: seededRandom(1),
    admission: 'best-effort',
  });
  const idle = {
    function: identity.function,
    namespace: identity.namespace,
    share: classAtOrAbove(served.limit) / 100,
    request: served.request,
    memoryMiB,
  };
  const places = Array.from({ length: gpus }, (_, at) => ({
    ...{ ...gpu, id: `gpu${at}`, node: `node${String(at).padStart(2, '0')}` },
    idle: at === 0 ? [idle] : [],
  }));
  const cluster = { places, warmMs: 0, fromMs: 0, untilMs: lengthS * 1000 };
  const { finished, actions } = replay(jobs, cluster, truthOf(served, soloMs), policy, seededRandom(1));
  const byId = new Map(finished.map((one) => [one.job.task.id, one]));
  const requests = jobs.map(({ task: { id } }) => {
    const { startedAt = NaN, finishedAt = NaN } = byId.get(id) ?? {};
    return { startedAt, endedAt: finishedAt };
  });
  const timesOf = (kind: string): number[] =>
    actions.flatMap(({ at, action, refused }) => (action.kind === kind && refused === undefined ? [at] : []));
  return {
    requests,
    launches: timesOf('launch'),
    retirements: timesOf('retire'),
    svr: violationsOf(arrivals, requests, served.sloMs),
  };
}

function jobOf(
  { surface, batch, request, limit, sloMs }: TracedFunction,
  at: number,
  { arrivedAt, soloMs, coldMs }: { arrivedAt: number; soloMs: number; coldMs: number },
): ReplayJob {
  const share = { shareClass: classAtOrAbove(limit), smRequest: request, smLimit: limit, memoryMiB };
  const profile = {
    gpuType,
    mode,
    request: Math.round(request * 1000),
    limit: Math.round(limit * 1000),
    batch,
  } as const;
  const times = { ms: latencyAt(surface, batch, request), limitMs: latencyAt(surface, batch, limit) };
  const asked = { action: identity.function, namespace: identity.namespace, isolation: 'shared', share } as const;
  const task: Task = {
    ...{ ...identity, id: `r${at}`, batch, gpus: 1, memoryMiB, class: 'inference' },
    ...{ arrivedAt, sloMs, startMs: coldMs, profiledShares: [{ ...profile, ...times }] },
    request: { ...asked, memoryMiB, gpus: 1, isBounded: false, batch },
  };
  return { task, workload: 'f', soloMs, startMs: coldMs };
}

/** The measured surface, for an instance that is alone on its GPU. */
function truthOf({ surface }: TracedFunction, soloMs: number): GpuTruth {
  return {
    noise: 0,
    used: (clients) => clients.reduce((sum, { share }) => sum + share, 0),
    slowdowns(clients) {
      if (clients.length > 1) throw new RangeError('instances of the trace are alone on their GPUs');
      return Float64Array.from(clients, ({ share, requests = 1 }) => latencyAt(surface, requests, share) / soloMs);
    },
  };
}
