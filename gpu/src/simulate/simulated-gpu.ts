// A simulated GPU: its runs, its idle instances, and how fast its runs go on.
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import { profilesOf } from '../stages/geometry/mig-profiles.js';
import type { InstanceState, Task } from '../view/view.js';
import { isBatched, processesAmong, tasksIn } from './simulated-batches.js';
import type { IdleInstance, ReportedPlace } from './node-rows.js';
import type { RunTotals, ReplayJob, GpuTruth, TruthClient } from './replay.js';
import { trainingOf } from './simulated-workload.js';
import type { SimulatedWorkload, Training } from './simulated-workload.js';
import { classAtOrAbove } from '../view/shares.js';

/** A job on a GPU. */
export interface Run {
  job: ReplayJob;
  task: Task;
  /** Id of the instance that it runs in, and the class of that. */
  instance: string;
  class: number;
  /** Its limit, and its request, fractions of the GPU. */
  share: number;
  request: number;
  startedAt: number;
  /** Of its injection or cold start. */
  startMs: number;
  /** What is left of it, during which it holds memory and computes nothing. */
  startLeftMs: number;
  /** Of its solo time. */
  leftMs: number;
  /** Wall time for each ms of it, as things are. */
  slowdown: number;
  /** For how long others ran beside it. */
  besideMs: Map<string, { task: Task; share: number; ms: number }>;
  /** Its instance goes with it. */
  isLast: boolean;
  /** It is in the next batch of its instance, which loads or runs the one before. */
  waits: boolean;
}

/** An instance that was launched ahead of requests and loads its code. */
export interface Loading extends Omit<SimulatedInstance, 'idleSince'> {
  /** As what it holds memory until it has loaded. */
  task: Task;
  startedAt: number;
}

/** An instance that idles. */
export interface SimulatedInstance extends IdleInstance {
  id: string;
  idleSince: number;
}

/** A GPU of a replay; policies see what its node reports of it. */
export interface SimulatedGpu extends ReportedPlace {
  /** That it is, or is a slice of, of this profile. */
  device: string;
  profile?: string;
  runs: readonly Run[];
  loading: readonly Loading[];
  /** Its workloads. */
  trainings: readonly Training[];
  /** Absent: every task starts in a new process. */
  idle?: readonly SimulatedInstance[];
  readonly running: readonly (Run | Loading)[];
  used: number;
  /** No new work comes: it is being cut, or its node given back. */
  isClosed: boolean;
}

/** A GPU, or a slice (`profile`) of a device, at the beginning. */
export type SimulatedPlace = Pick<
  ReportedPlace,
  'id' | 'node' | 'type' | 'mode' | 'memoryMiB' | 'movesShares' | 'idle'
> &
  Partial<Pick<SimulatedGpu, 'device' | 'profile'>> & {
    /** MIG profiles that a device is cut into at the beginning; absent: it is whole. */
    profiles?: readonly string[];
    /** Why its device may not be cut; absent: it may. */
    mayNotCut?: string;
  };

/** A slice of a device. Throws RangeError for a profile that it lacks. */
export function slicePlace(
  { id: device, node, type }: SimulatedPlace,
  profile: string,
  number: number,
): SimulatedPlace {
  const entry = profilesOf(type).find(({ name }) => name === profile);
  if (entry === undefined) throw new RangeError(`a ${type} has no slice '${profile}'`);
  const id = `${device}:${profile}-${number}`;
  const memoryMiB = Math.floor(entry.memoryMiB * gpuMemoryBound);
  return { id, node, type: `${type}:${profile}`, profile, device, mode: 'mig', memoryMiB };
}

/** The slices among GPUs. */
export function slicesOf(gpus: readonly SimulatedGpu[]): { uuid: string; profile: string }[] {
  return gpus.flatMap(({ id, profile }) => (profile === undefined ? [] : [{ uuid: id, profile }]));
}

/** It with nothing on it but `idle` (absent: no instances are kept) and `workloads`. */
export function simulatedGpu(
  place: SimulatedPlace,
  idle: readonly SimulatedInstance[] | undefined,
  workloads: readonly SimulatedWorkload[],
): SimulatedGpu {
  return {
    ...place,
    device: place.device ?? place.id,
    runs: [],
    loading: [],
    trainings: workloads.map(trainingOf),
    workloads: workloads.map(({ memoryMiB }) => memoryMiB),
    ...(idle && { idle }),
    used: 0,
    isClosed: false,
    get running() {
      return this.loading.length === 0 ? this.runs : [...this.runs, ...this.loading];
    },
  } as SimulatedGpu;
}

/** Memory that instances with runs, instances which load, and workloads hold, MiB. */
export function heldMiB({ running, trainings }: SimulatedGpu): number {
  const workloadsMiB = trainings.reduce((sum, { workload }) => sum + workload.memoryMiB, 0);
  return processesAmong(running).reduce((sum, { task }) => sum + task.memoryMiB, workloadsMiB);
}

function shareOf({ share: limit, request = limit }: Pick<IdleInstance, 'share' | 'request'>): {
  request: number;
  limit: number;
} {
  return { request, limit };
}

/** The instances on a GPU. */
export function instancesOn(gpu: SimulatedGpu): InstanceState[] {
  const one = (
    { id, function: name, namespace, memoryMiB, share }: Omit<SimulatedInstance, 'idleSince'>,
    given: { request: number; limit: number },
    rest: Pick<InstanceState, 'state' | 'tasks' | 'idleSince'>,
  ): InstanceState => ({
    id,
    function: name,
    namespace,
    gpus: [gpu.id],
    memoryMiB,
    share: { ...given, class: share },
    ...rest,
  });
  const loading = new Set(gpu.loading.map(({ id }) => id));
  return [
    ...processesAmong(gpu.runs).flatMap(({ instance: id, task, class: share, share: limit, request, isLast }) => {
      if (loading.has(id)) return [];
      const { function: name, namespace, memoryMiB } = task;
      const state = isLast ? 'draining' : 'running';
      const tasks = tasksIn(gpu.runs, id, task);
      return one({ id, function: name, namespace, memoryMiB, share }, { request, limit }, { state, tasks });
    }),
    ...gpu.loading.map((it) => one(it, shareOf(it), { state: 'loading', tasks: [] })),
    ...(gpu.idle ?? []).map((it) => one(it, shareOf(it), { state: 'idle', tasks: [], idleSince: it.idleSince })),
  ];
}

/** Computes how fast each run and each workload on the GPU goes on from now. */
export function rateAll(gpu: SimulatedGpu, truth: GpuTruth): void {
  const computing = gpu.runs.filter(({ startLeftMs, waits }) => startLeftMs <= 0 && !waits);
  const processes = processesAmong(computing);
  const { trainings } = gpu;
  const clients = processes.map(({ job, share, task, instance }): TruthClient => {
    const requests = tasksIn(computing, instance, task).length;
    return { workload: job.workload, share, ...(requests > 1 && { requests }) };
  });
  for (const { workload } of trainings) clients.push({ workload: workload.workload, share: workload.share ?? 1 });
  const kind = { gpuType: gpu.type, mode: gpu.mode };
  const slowdowns = truth.slowdowns(clients, kind);
  for (const [i, one] of processes.entries()) {
    const batch = isBatched(one.task) ? computing.filter(({ instance }) => instance === one.instance) : [one];
    for (const run of batch) run.slowdown = slowdowns[i] as number;
  }
  for (const [i, one] of trainings.entries()) one.slowdown = slowdowns[processes.length + i] as number;
  gpu.used = clients.length === 0 ? 0 : truth.used(clients, kind);
}

/** Lets `elapsedMs` pass on a GPU. */
export function advance(gpu: SimulatedGpu, elapsedMs: number, waiting: readonly Task[], totals: RunTotals): void {
  if (elapsedMs <= 0) return;
  for (const one of gpu.runs) {
    if (one.waits) continue;
    if (one.startLeftMs > 0) one.startLeftMs = one.startLeftMs - elapsedMs < 1e-6 ? 0 : one.startLeftMs - elapsedMs;
    else {
      const progressMs = elapsedMs / one.slowdown;
      one.leftMs -= progressMs;
      totals.progressMs += progressMs;
      for (const other of gpu.runs) {
        if (other.instance === one.instance || other.startLeftMs > 0 || other.waits) continue;
        const seen = one.besideMs.get(other.task.id);
        if (seen) seen.ms += elapsedMs;
        else one.besideMs.set(other.task.id, { task: other.task, share: other.share, ms: elapsedMs });
      }
    }
  }
  for (const one of gpu.trainings) {
    one.progressMs += elapsedMs / one.slowdown;
    one.usedMs += elapsedMs * gpu.used;
  }
  totals.gpuMs += elapsedMs;
  totals.usedMs += gpu.used * elapsedMs;
  if (gpu.running.length > 0) totals.occupiedMs += elapsedMs;
  if (waiting.length > 0) {
    const freeMiB = gpu.memoryMiB - heldMiB(gpu);
    totals.freeMiBMs += freeMiB * elapsedMs;
    if (!waiting.some(({ memoryMiB }) => memoryMiB <= freeMiB)) totals.strandedMiBMs += freeMiB * elapsedMs;
  }
}

/** A task in the process that it gets, and what idles on the GPU then. */
interface StartedIn<Instance> {
  share: number;
  /** Absent: a new one. */
  reused?: Instance;
  idle: Instance[];
}

/**
 * Starts a task as the controller does: in an instance of its function with at least the share that was decided, the
 * smallest such, else in a new one of the next share class, for which instances go, the largest first, until it fits into
 * `freeMiB` of memory that no task holds.
 */
export function startAmong<Instance extends IdleInstance>(
  idle: readonly Instance[],
  task: Task,
  decided: number,
  freeMiB: number,
): StartedIn<Instance> {
  const own = idle.filter(
    ({ function: name, namespace, share }) =>
      name === task.function && namespace === task.namespace && share >= decided,
  );
  const reused = own.toSorted((a, b) => a.share - b.share)[0];
  if (reused !== undefined) {
    return { share: reused.share, reused, idle: idle.filter((one) => one !== reused) };
  }
  const left = idle.toSorted((a, b) => a.memoryMiB - b.memoryMiB);
  const lackingMiB = (): number => left.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0) + task.memoryMiB - freeMiB;
  while (left.length > 0 && lackingMiB() > 0) left.pop();
  return { share: classAtOrAbove(decided) / 100, idle: left };
}

/** What a task leaves behind. */
export function instanceOf({ function: name, namespace, memoryMiB }: Task, share: number): IdleInstance {
  return { function: name, namespace, share, memoryMiB };
}
