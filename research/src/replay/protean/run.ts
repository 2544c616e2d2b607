// Batches of PROTEAN's experiments under policies of the registry, in the platform's simulator.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy, type PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { replay, type FinishedJob, type GpuTruth, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { RentedMachine, SimulatedProvider } from '@gpuwhisk/gpu/simulate/simulated-provider';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { Batch } from './arrivals.js';
import { sloFactor, type Served } from './metrics.js';
import { profiled } from './profiled.js';
import { deviceType, functionOf, memoryOf, profileAt, type World } from './world.js';
import '../../baselines/register.js';

/** A policy, and the slices of each GPU at the beginning. */
export interface Scheme {
  policy: PolicyChoice;
  /** None: GPUs are whole. */
  geometry: readonly string[];
  /** Its model of slowdowns is profiled before the first request. */
  isProfiled?: true;
}

/** Clients of one MPS server (NVIDIA's documentation of MPS). */
const mostClients = 48;
const together = { base: 'fcfs', share: 'unlimited', place: 'fewest-tasks', settings: { slots: mostClients } } as const;
/** The slices with the most resources (paper, section 2.2). */
const halves = ['4g.20gb', '3g.20gb'] as const;

/** PROTEAN with the paper's geometry at the beginning (section 6.1.1, figure 7), and the schemes that it is compared with. */
export const schemes: Readonly<Record<string, Scheme>> = {
  protean: { policy: 'protean', geometry: ['4g.20gb', '2g.10gb', '1g.5gb'], isProfiled: true },
  molecule: { policy: 'exclusive', geometry: [] },
  infless: { policy: together, geometry: [] },
  naive: { policy: together, geometry: halves },
};

/** GPUs of the paper's cluster. */
const deviceCount = 8;

/** GPUs that are there throughout, or machines of one GPU each that policies rent (and since when). */
type Gpus = { count: number } | { provider: SimulatedProvider; fromMs: number };

/** Serves batches under a scheme until all have ended. Throws Error if some wait for ever. */
export function serve(
  world: World,
  batches: readonly Batch[],
  scheme: Scheme,
  gpus: Gpus = { count: deviceCount },
): { served: Served[]; machines: readonly RentedMachine[] } {
  const policy = makePolicy(scheme.policy, {
    predictorOf: () => capacityModel,
    random: seededRandom(1),
    admission: 'best-effort',
  });
  if (scheme.isProfiled) policy.restore?.({ slices: profiled(world, seededRandom(1)).state() });
  const ofTask = new Map(batches.map((batch) => [`batch${batch.id}`, batch]));
  const jobs = Array.from(ofTask, ([id, batch]) => jobOf(id, batch));
  const place = { type: deviceType, mode: 'mps', memoryMiB: memoryOf('7g.40gb'), profiles: scheme.geometry } as const;
  const cluster =
    'count' in gpus
      ? { places: Array.from({ length: gpus.count }, (_, at) => ({ ...place, id: `gpu${at}`, node: `node${at}` })) }
      : { places: [], more: [place], ...gpus };
  const { finished, machines } = replay(jobs, cluster, truthOf(world), policy, seededRandom(1));
  return { served: finished.map((one) => servedOf(one, ofTask.get(one.job.task.id) as Batch)), machines };
}

/** A batch as a task. Its SLO is that of its first request, which came before it could start. */
function jobOf(id: string, batch: Batch): ReplayJob {
  const { model, isStrict, firstMs, readyMs } = batch;
  const task: Task = {
    ...{ id, function: functionOf(batch), version: '1', namespace: 'n', gpus: 1, class: 'inference' },
    // Policies see a batch as one request.
    ...{ batch: 1, memoryMiB: model.memoryMiB, soloMs: model.soloMs, arrivedAt: readyMs },
    ...(isStrict && { sloMs: (batch.sloFactor ?? sloFactor) * model.soloMs - (readyMs - firstMs) }),
  };
  return { task, workload: model.name, soloMs: batch.soloMs, startMs: 0, isIdempotent: true };
}

/** The profile of a kind of place; a GPU that is not cut is 7g. */
function profileOf(type: string): string {
  const [, profile = '7g.40gb'] = type.split(':');
  return profile;
}

/** Equation 1 on each slice, and a cost of sharing it that is no part of it. */
function truthOf({ models, clientCost }: World): GpuTruth {
  const byName = new Map(models.map((model) => [model.name, model]));
  return {
    // Times of batches have their noise.
    noise: 0,
    used: () => 1,
    slowdowns(clients, gpu) {
      const at = profileAt(profileOf(gpu?.gpuType ?? deviceType));
      const of = clients.map(({ workload }) => byName.get(workload));
      const demand = of.reduce((sum, model) => sum + (model?.bandwidth[at] ?? NaN), 0);
      const stretch = Math.max(1, demand) * (clients.length > 1 ? 1 + clientCost : 1);
      return Float64Array.from(of, (model) => (model?.deficiency[at] ?? NaN) * stretch);
    },
  };
}

function servedOf({ startedAt: startedMs, finishedAt: endedMs, gpuType }: FinishedJob, batch: Batch): Served {
  const aloneMs = batch.soloMs;
  const deficiency = batch.model.deficiency[profileAt(profileOf(gpuType))] as number;
  const deficiencyMs = aloneMs * (deficiency - 1);
  const interferenceMs = endedMs - startedMs - aloneMs - deficiencyMs;
  return { batch, startedMs, endedMs, aloneMs, deficiencyMs, interferenceMs };
}
