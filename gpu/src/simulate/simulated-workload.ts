// Training jobs of a replay: what slows them down, what they report, and what policies see of them.
import { withoutUndefined } from '@gpuwhisk/common/collections';
import type { FeatureRecord } from '../predict/slowdown-predictor.js';
import type { WorkloadState } from '../view/view.js';
import { standingOf } from '../view/workload-standing.js';

/** A registered workload on a GPU of a replay. It computes from the beginning to the end of the replay. */
export interface SimulatedWorkload {
  id: string;
  /** The GPU, or slice of one, that it computes on. */
  gpu: string;
  /** Its name in the truth. */
  workload: string;
  /** Memory that it holds, MiB. */
  memoryMiB: number;
  /** Fraction of the SMs that it may use; absent: all. */
  share?: number;
  /** By how much it may get slower, fraction 0–1 of its rate. */
  tolerated: number;
  /** Its rate alone as it is registered, in units of its true rate alone. */
  baseline: number;
  /** Standard deviation of the logarithm of a reported rate. */
  noise: number;
  /** As in WorkloadState. */
  name?: string;
  features?: FeatureRecord;
}

/** A workload while it runs. */
export interface Training {
  workload: SimulatedWorkload;
  /** Wall time for each ms of its time alone, as things are. */
  slowdown: number;
  /** Its time alone that it has worked off, ms. */
  progressMs: number;
  /** The part of it that its last report counted. */
  reportedMs: number;
  /** The last reported rate, and when it came; absent: none has. */
  report?: { rate: number; at: number };
  /** Part of its GPU's SMs in use over time, ms: since its last report. */
  usedMs: number;
  /** Each second that was reported. */
  seconds: WorkloadSecond[];
}

/** One second of a workload, as it truly was. */
export interface WorkloadSecond {
  /** D = time together / time alone − 1. */
  degradation: number;
  /** Part of the SMs of its GPU in use, by functions too. */
  used: number;
}

/** A workload as a replay has shown it. */
export interface WorkloadRun {
  workload: SimulatedWorkload;
  elapsedMs: number;
  /** Time alone that was worked off, ms. */
  progressMs: number;
  seconds: readonly WorkloadSecond[];
}

/** How often workloads report their rate, ms. */
export const reportMs = 1000;

/** A workload that begins. */
export function trainingOf(workload: SimulatedWorkload): Training {
  return { workload, slowdown: 1, progressMs: 0, reportedMs: 0, usedMs: 0, seconds: [] };
}

/** Reports the rate since the last report; `noise`: a standard normal number. */
export function report(training: Training, at: number, noise: number): void {
  const { workload, progressMs, reportedMs } = training;
  const rate = (progressMs - reportedMs) / reportMs;
  training.reportedMs = progressMs;
  training.seconds.push({ degradation: 1 / rate - 1, used: training.usedMs / reportMs });
  training.usedMs = 0;
  training.report = { rate: rate * Math.exp(workload.noise * noise), at };
}

/** A workload as policies see it at `at`. */
export function workloadState(training: Training, node: string, at: number): WorkloadState {
  const { id, gpu, tolerated, baseline, name, features } = training.workload;
  const { rate, at: reportedAt } = training.report ?? {};
  const standing = standingOf(
    withoutUndefined({ baselineRate: baseline, maxDegradation: tolerated, rate, reportedAt }),
    at,
  );
  return withoutUndefined({
    ...{ id, node, device: gpu, tolerated, baseline, baselineFrom: 'declared' as const },
    ...{ name, features, rate, reportedAt, state: standing?.state, measured: standing?.degradation },
  });
}
