// Training jobs on the wire: functions that run for hours or days, on one or several GPUs of a node.
import { MalformedError } from './entities/malformed.js';
import { isJsonObject } from './json.js';
import type { JsonValue } from './json.js';

/** One run of a training job; it rides with the activation that carries the run out. */
export interface TrainingRun {
  job: string;
  /** From 1. */
  attempt: number;
  gpus: number;
  /** Processes that train together: one, or one for each GPU. */
  members: number;
  /** Longest time of the run, ms. */
  limitMs: number;
  /** Longest time until all members have met, ms; 0: no bound. */
  rendezvousMs: number;
  /** Bound on the job's checkpoint folder, MiB; absent: the job has none. */
  checkpointMiB?: number;
  /** The invoker that has the job's checkpoints; absent: any invoker will do. */
  invoker?: string;
}

/** Progress of a run, as its runtime reports it. */
export interface TrainingProgress {
  /** Members that have met the others. */
  joined?: number;
  /** Steps of member 0 in this run, its steps per second, and whether it makes none for far longer than before. */
  steps?: number;
  rate?: number;
  stalled?: boolean;
  /** Why the run ended, unless it succeeded: a member failed or did not meet the others, or the job was asked to stop. */
  end?: TrainingEnd;
}

/** `checkpoint`: the bound on checkpoints was exceeded, or their disk is full. */
export type TrainingEnd = 'died' | 'rendezvous' | 'stopped' | 'checkpoint';

const ends: readonly string[] = ['died', 'rendezvous', 'stopped', 'checkpoint'] satisfies TrainingEnd[];

/** A run under way, as its invoker reports it. */
export interface TrainingStatus extends TrainingProgress {
  attempt: number;
  activationId: string;
  invoker: string;
  container: string;
  /** UUIDs of its GPUs, or of its MIG instance. */
  devices: string[];
  /** Size of the checkpoint folder at the last look, MiB. */
  checkpointUsedMiB?: number;
}

/** The last lines of a run's log. */
export interface TrainingLog {
  attempt: number;
  /** The place of the first line in the log, from 0. */
  from: number;
  lines: string[];
}

/** The ClusterState tables of TrainingStatus and TrainingLog rows, by job. */
export const trainingStatusTable = 'gpuTrainingStatus';
export const trainingLogTable = 'gpuTrainingLogs';
/** The ClusterState table of jobs that have ended: invokers remove their checkpoints. */
export const endedTrainingTable = 'gpuTrainingEnded';
/** How long such rows of runs last that are not written again, ms. */
export const trainingRowTtlMs = 10_000;

/** Whether a text can be the id of a training job. It names a folder of an invoker. */
export function isTrainingJobId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}

/** Checks the training run of a message; absent is none. Throws MalformedError. */
export function checkTrainingRun(value: JsonValue | undefined): void {
  if (value === undefined || value === null) return;
  const { job, ...numbers } = isJsonObject(value) ? value : {};
  const fields = ['attempt', 'gpus', 'members', 'limitMs', 'rendezvousMs'];
  const isWhole = (field: string): boolean => Number.isSafeInteger(numbers[field]);
  if (typeof job !== 'string' || !isTrainingJobId(job) || !fields.every(isWhole)) {
    throw new MalformedError('training malformed');
  }
}

/** Progress from a runtime's report, which the code of the job can write. What is malformed is left out. */
export function readTrainingProgress(told: unknown): TrainingProgress {
  if (!isJsonObject(told)) return {};
  const { joined, steps, rate, stalled, end } = told;
  const isCount = (value: unknown): value is number =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0;
  return {
    ...(isCount(joined) && { joined }),
    ...(isCount(steps) && { steps }),
    ...(isCount(rate) && { rate }),
    ...(stalled === true && { stalled }),
    ...(typeof end === 'string' && ends.includes(end) && { end: end as TrainingEnd }),
  };
}
