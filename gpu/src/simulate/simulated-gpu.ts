import type { GpuState, Task } from '../view/view.js';
import type { RunTotals } from './run-totals.js';
import type { ReplayJob } from './replay.js';
import type { GpuTruth } from './truth.js';

/** A job on a GPU. */
export interface Run {
  job: ReplayJob;
  task: Task;
  share: number;
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
}

/** A GPU of a replay; a policy sees what `GpuState` has. */
export interface SimulatedGpu extends GpuState {
  runs: readonly Run[];
  readonly running: readonly Run[];
  used: number;
}

/** A GPU at the beginning of a replay. */
export type SimulatedPlace = Pick<GpuState, 'id' | 'node' | 'type' | 'mode' | 'memoryMiB' | 'idle'>;

/** It with nothing on it but its instances, where these are kept. */
export function simulatedGpu(place: SimulatedPlace, keepsInstances: boolean): SimulatedGpu {
  return {
    ...place,
    runs: [],
    ...(keepsInstances && { idle: place.idle ?? [] }),
    used: 0,
    get running() {
      return this.runs;
    },
  };
}

/** Reckons how fast everybody on the GPU now runs. */
export function rateAll(gpu: SimulatedGpu, truth: GpuTruth): void {
  const computing = gpu.runs.filter(({ startLeftMs }) => startLeftMs <= 0);
  const clients = computing.map(({ job, share }) => ({ workload: job.workload, share }));
  const slowdowns = truth.slowdowns(clients, gpu);
  for (const [i, one] of computing.entries()) one.slowdown = slowdowns[i] as number;
  gpu.used = computing.length === 0 ? 0 : truth.used(clients);
}

/** Lets `elapsedMs` pass on a GPU. */
export function advance(gpu: SimulatedGpu, elapsedMs: number, waiting: readonly Task[], totals: RunTotals): void {
  if (elapsedMs <= 0) return;
  let freeMiB = gpu.memoryMiB;
  for (const one of gpu.runs) {
    freeMiB -= one.task.memoryMiB;
    if (one.startLeftMs > 0) one.startLeftMs = one.startLeftMs - elapsedMs < 1e-6 ? 0 : one.startLeftMs - elapsedMs;
    else {
      const progressMs = elapsedMs / one.slowdown;
      one.leftMs -= progressMs;
      totals.progressMs += progressMs;
      for (const other of gpu.runs) {
        if (other === one || other.startLeftMs > 0) continue;
        const seen = one.besideMs.get(other.task.id);
        if (seen) seen.ms += elapsedMs;
        else one.besideMs.set(other.task.id, { task: other.task, share: other.share, ms: elapsedMs });
      }
    }
  }
  totals.gpuMs += elapsedMs;
  totals.usedMs += gpu.used * elapsedMs;
  if (gpu.runs.length > 0) totals.occupiedMs += elapsedMs;
  if (waiting.length > 0) {
    totals.freeMiBMs += freeMiB * elapsedMs;
    if (!waiting.some(({ memoryMiB }) => memoryMiB <= freeMiB)) totals.strandedMiBMs += freeMiB * elapsedMs;
  }
}
