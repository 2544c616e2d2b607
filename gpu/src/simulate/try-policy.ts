import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../policies/make-policy.js';
import { registerModules } from '../policies/policy-modules.js';
import type { ModuleSource } from '../policies/policy-modules.js';
import { trainingLast } from '../policies/training-last.js';
import type { LateTaskHandling, PolicyChoice } from '../policies/make-policy.js';
import { capacityModel } from '../predict/slowdown-predictor.js';
import { predictorsOf } from '../predict/slowdown-model.js';
import type { SlowdownPredictor, WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { Task } from '../view/view.js';
import { replay } from './replay.js';
import type { ReplayRun, GpuTruth } from './replay.js';
import type { SimulatedPlace } from './simulated-gpu.js';

/** Input of a trial. */
export interface PolicyTrial {
  policies: readonly PolicyChoice[];
  admission: LateTaskHandling;
  /** With soloMs; a task of several GPUs is left out. */
  tasks: readonly Task[];
  places: readonly SimulatedPlace[];
  /** Learned predictors as text, by type and mode; where there is none, the capacity model holds. */
  models: readonly string[];
  /** Start of a task in an instance that is there, ms. */
  warmMs: number;
  /** Policy modules that the policies may be in; absent: none. */
  modules?: readonly ModuleSource[];
}

/** How the tasks of a trial fared under one policy. */
export interface TrialResult {
  policy: string;
  /** From arrival to start, ms; 0 if nothing ran. */
  meanWaitMs: number;
  p99WaitMs: number;
  /** From arrival to end, ms. */
  meanMs: number;
  /** Tasks with an SLO that ended later than that, or not at all. */
  missed: number;
  withSlo: number;
  refused: number;
  /** Tasks whose run was stopped for another one, and not repeated. */
  stopped: number;
  /** GPU time in which a GPU held a task, hours. */
  gpuHours: number;
  /** Absent: it ended. Else why it did not. */
  problem?: string;
}

/** This module, for a thread of its own. */
export const trialModule = new URL(import.meta.url);

/**
 * Replays the tasks under each policy. The truth is what was learned: a run takes its time alone times the slowdown that
 * the predictor in force foresees, which favours policies that go by that predictor.
 */
export function tryPolicies(trial: PolicyTrial): TrialResult[] {
  const { policies, admission, places, warmMs } = trial;
  const predictorOf = predictorsOf(trial.models);
  const measured = trial.tasks.filter(isMeasured);
  // From 0: beside an epoch time, a double does not hold the fractions of a ms that the replay adds.
  const firstAt = measured.reduce((least, { arrivedAt }) => Math.min(least, arrivedAt), Infinity);
  const tasks = measured.map((task) => ({ ...task, arrivedAt: task.arrivedAt - firstAt }));
  const truth = learnedTruth(tasks, predictorOf);
  const jobs = tasks.map((task) => ({
    task,
    workload: task.id,
    soloMs: task.soloMs,
    startMs: task.startMs ?? 0,
  }));
  return policies.map((choice) => {
    const random = seededRandom(1);
    const policy = trainingLast(makePolicy(choice, { predictorOf, random, admission }), predictorOf);
    try {
      return resultOf(policy.name, replay(jobs, { places, warmMs }, truth, policy, random), tasks);
    } catch (error) {
      return { ...resultOf(policy.name, undefined, tasks), problem: (error as Error).message };
    }
  });
}

function isMeasured(task: Task): task is Task & { soloMs: number } {
  return task.gpus === 1 && task.soloMs !== undefined;
}

/** A function that was never profiled uses a whole GPU. */
const unprofiled: WorkloadFeatures = { smUtil: 1, dramUtil: 0.5, l2Util: 0.5 };

function learnedTruth(tasks: readonly Task[], predictorOf: (gpu: GpuKind) => SlowdownPredictor): GpuTruth {
  const featuresOf = new Map(tasks.map(({ id, features = unprofiled }) => [id, features]));
  return {
    noise: 0,
    slowdowns(clients, gpu) {
      const located = clients.map(({ workload, share }) => ({
        features: featuresOf.get(workload) ?? unprofiled,
        share,
      }));
      const predictor = gpu === undefined ? capacityModel : predictorOf(gpu);
      const others = (at: number): typeof located => located.filter((_, other) => other !== at);
      return Float64Array.from(located, (one, at) => Math.max(1, predictor.slowdown(one, others(at))));
    },
    used: (clients) =>
      Math.min(
        1,
        clients.reduce((sum, { workload, share }) => {
          const { smUtil } = featuresOf.get(workload) ?? unprofiled;
          return sum + Math.min(share, smUtil);
        }, 0),
      ),
  };
}

function resultOf(policy: string, run: ReplayRun | undefined, tasks: readonly Task[]): TrialResult {
  const finished = run?.finished ?? [];
  const waits = finished.map(({ job, startedAt }) => startedAt - job.task.arrivedAt).sort((one, other) => one - other);
  const mean = (values: readonly number[]): number =>
    values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
  const late = finished.filter(({ job, finishedAt }) => finishedAt > job.task.arrivedAt + (job.task.sloMs ?? Infinity));
  const strict = new Set(tasks.filter(({ sloMs }) => sloMs !== undefined).map(({ id }) => id));
  const { refused = [], stopped = [] } = run ?? {};
  return {
    policy,
    meanWaitMs: mean(waits),
    p99WaitMs: waits[Math.max(0, Math.ceil(0.99 * waits.length) - 1)] ?? 0,
    meanMs: mean(finished.map(({ job, finishedAt }) => finishedAt - job.task.arrivedAt)),
    missed: late.length + [...refused, ...stopped].filter((id) => strict.has(id)).length,
    withSlo: strict.size,
    refused: refused.length,
    stopped: stopped.length,
    gpuHours: (run?.totals.occupiedMs ?? 0) / 3_600_000,
  };
}

/** The same for messages between threads, in one of its own. */
export default async function run(input: JsonValue): Promise<JsonValue> {
  const trial = input as unknown as PolicyTrial;
  await registerModules(trial.modules ?? [], (address) => import(address));
  return { results: tryPolicies(trial) as unknown as JsonValue };
}
