// A training job: its record, and what becomes of it when its runs begin and end. Functions of plain data.
import { withoutUndefined } from '@gpuwhisk/common/collections';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { isJsonObject } from '@gpuwhisk/common/json';
import { readTrainingProgress } from '@gpuwhisk/common/training';
import type { TrainingRun } from '@gpuwhisk/common/training';

/**
 * `queued`: its run waits for GPUs or begins; `waiting`: its next run begins at `retryAt`; `stopping`: its run is to end.
 * The last three are final.
 */
export type TrainingState = 'queued' | 'running' | 'waiting' | 'stopping' | 'succeeded' | 'failed' | 'stopped';

/** One run of a job. Times in epoch ms. */
export interface TrainingAttempt {
  /** From 1. */
  number: number;
  activationId: string;
  startedAt?: number;
  endedAt?: number;
  /** Why the run ended; absent while it goes on and after a success. */
  reason?: string;
  /** Steps in this run. */
  steps?: number;
}

/** What the owner of a job asks for. */
export interface TrainingOrder {
  namespace: string;
  /** `/namespace/[package/]action`. */
  action: string;
  /** Encrypted in a stored job where `parameterStorage` encrypts those of actions; none once the job has ended. */
  parameters: readonly Parameter[];
  gpus: number;
  members: number;
  /** Runs that may begin again after a failure. */
  maxRestarts: number;
  /** Longest time of all runs together, ms. */
  timeLimitMs: number;
  rendezvousMs: number;
  /** Bound on the checkpoint folder; absent: the job keeps no checkpoints. */
  checkpointMiB?: number;
}

/** A training job, as it is stored. Times in epoch ms. */
export interface TrainingJob extends TrainingOrder {
  id: string;
  createdAt: number;
  endedAt?: number;
  state: TrainingState;
  /** Why it waits, failed or was stopped. */
  reason?: string;
  /** Runs that failed and were followed by another one. */
  restarts: number;
  /** Runs that the platform ended: preempted, lost, or cut by a restart of the platform; those in a row. */
  interruptions: number;
  interruptedInRow: number;
  /** Time of the ended runs together, ms. */
  ranMs: number;
  retryAt?: number;
  /** How long a run that is stopped may go on, ms. */
  graceMs?: number;
  /** The invoker that has its checkpoints. */
  invoker?: string;
  /** The last runs, the newest last. */
  attempts: TrainingAttempt[];
}

/** Runs whose records a job names. */
const maxAttempts = 50;
/** First delay of a further run, ms: doubled with each one, up to the longest. */
const [firstDelayMs, longestDelayMs] = [1000, 300_000];

/** A job that has just been accepted; its first run begins at once. */
export function newTrainingJob(id: string, order: TrainingOrder, nowMs: number): TrainingJob {
  const none = { restarts: 0, interruptions: 0, interruptedInRow: 0, ranMs: 0, attempts: [] };
  return { ...order, id, createdAt: nowMs, state: 'waiting', retryAt: nowMs, ...none };
}

/** Whether a job has come to its end. */
export function isOver({ state }: Pick<TrainingJob, 'state'>): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'stopped';
}

/** The last run of a job; undefined before the first. */
export function lastAttempt({ attempts }: Pick<TrainingJob, 'attempts'>): TrainingAttempt | undefined {
  return attempts.at(-1);
}

/** The job with a further run, which has been or will be sent. */
export function withAttempt(job: TrainingJob, activationId: string): TrainingJob {
  const number = (lastAttempt(job)?.number ?? 0) + 1;
  const next: TrainingJob = {
    ...job,
    state: 'queued',
    attempts: [...job.attempts, { number, activationId }].slice(-maxAttempts),
  };
  delete next.retryAt;
  delete next.reason;
  return next;
}

/** The part of a job that rides with its last run. */
export function runOf(job: TrainingJob): TrainingRun {
  const { id, gpus, members, timeLimitMs, ranMs, rendezvousMs, checkpointMiB, invoker } = job;
  const [attempt, limitMs] = [lastAttempt(job)?.number ?? 1, Math.max(1, timeLimitMs - ranMs)];
  return withoutUndefined({ job: id, attempt, gpus, members, limitMs, rendezvousMs, checkpointMiB, invoker });
}

/** The job whose run is seen to run on an invoker since `nowMs`. */
export function whenRunning(job: TrainingJob, invoker: string, nowMs: number): TrainingJob {
  const attempt = lastAttempt(job);
  if (attempt === undefined || attempt.startedAt !== undefined) return job;
  const attempts = [...job.attempts.slice(0, -1), { ...attempt, startedAt: nowMs }];
  const state = job.state === 'queued' ? 'running' : job.state;
  return { ...job, state, attempts, ...(job.checkpointMiB !== undefined && { invoker }) };
}

/** How a run ended. */
export interface RunEnd {
  /** `failed`: by the job's own fault; `final`: so that a further run would fail, too; `interrupted`: by the platform. */
  kind: 'succeeded' | 'failed' | 'final' | 'interrupted';
  reason: string;
  /** Time of the run, ms. */
  ranMs: number;
  steps?: number;
  /** Where its members ran, and since when; absent if they did not. */
  ran?: { invoker: string; startedAt: number };
}

const askedToStop = 'The job was asked to stop.';

/** How the run ended that an activation's record tells of. */
export function endOf({ response, annotations, duration = 0, start, end }: WhiskActivation): RunEnd {
  const { statusCode, result } = response;
  const training = parameterValue(annotations, 'training');
  const { end: how, steps, joined } = readTrainingProgress(training);
  const invoker = isJsonObject(training) ? training.invoker : undefined;
  const error = isJsonObject(result) ? result.error : undefined;
  const failure = typeof error === 'string' ? error : error === undefined ? '' : JSON.stringify(error);
  // What ended as it was asked to is no failure, and has a result of its own.
  const reason = failure === '' && how === 'stopped' ? askedToStop : failure;
  const told = {
    reason,
    ranMs: Math.max(duration, end - start, 0),
    ...(steps !== undefined && { steps }),
    ...(joined !== undefined && typeof invoker === 'string' && { ran: { invoker, startedAt: start } }),
  };
  if (statusCode === ActivationStatus.whiskError || how === 'stopped') return { ...told, kind: 'interrupted' };
  if (statusCode === ActivationStatus.success) return { ...told, kind: 'succeeded' };
  const isTimeout = parameterValue(annotations, 'timeout') === true;
  // An error without a failed member is the action's own result.
  const isResult = statusCode === ActivationStatus.applicationError && how === undefined;
  return { ...told, kind: isTimeout || isResult || how === 'checkpoint' ? 'final' : 'failed' };
}

/** The end of a run of which nothing is known any more. */
export const lostRun: RunEnd = { kind: 'interrupted', reason: 'The run was lost.', ranMs: 0 };

/** The job after the end of its run, at `nowMs`. */
export function afterRun(before: TrainingJob, end: RunEnd, nowMs: number): TrainingJob {
  const { kind, reason, ranMs, steps, ran } = end;
  // A short run may not have been seen while it went on.
  const job = ran === undefined ? before : whenRunning(before, ran.invoker, ran.startedAt);
  const attempt = lastAttempt(job);
  const ended = attempt && {
    ...attempt,
    endedAt: nowMs,
    ...(reason !== '' && { reason }),
    ...(steps !== undefined && { steps }),
  };
  const next: TrainingJob = {
    ...job,
    ranMs: job.ranMs + ranMs,
    attempts: ended === undefined ? job.attempts : [...job.attempts.slice(0, -1), ended],
  };
  if (kind === 'succeeded') return over(next, 'succeeded', undefined, nowMs);
  if (job.state === 'stopping') return over(next, 'stopped', 'It was stopped.', nowMs);
  if (next.ranMs >= job.timeLimitMs)
    return over(next, 'failed', `It exceeded its time limit of ${job.timeLimitMs} ms.`, nowMs);
  if (kind === 'final') return over(next, 'failed', reason, nowMs);
  if (kind === 'interrupted') {
    const inRow = (steps ?? 0) > 0 ? 1 : job.interruptedInRow + 1;
    const interrupted = { ...next, interruptions: job.interruptions + 1, interruptedInRow: inRow };
    return again(interrupted, reason, inRow, nowMs);
  }
  if (job.restarts >= job.maxRestarts) {
    const used = job.maxRestarts === 0 ? '' : ` It was restarted ${job.maxRestarts} times before.`;
    return over(next, 'failed', `${reason}${used}`, nowMs);
  }
  return again({ ...next, restarts: job.restarts + 1, interruptedInRow: 0 }, reason, job.restarts + 1, nowMs);
}

/** The job that has to wait, before its `times`-th delay. */
function again(job: TrainingJob, reason: string, times: number, nowMs: number): TrainingJob {
  const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(times - 1, 20));
  return { ...job, state: 'waiting', reason, retryAt: nowMs + delayMs };
}

/** The job at its end. */
function over(
  job: TrainingJob,
  state: 'succeeded' | 'failed' | 'stopped',
  reason: string | undefined,
  nowMs: number,
): TrainingJob {
  const ended: TrainingJob = { ...job, state, endedAt: nowMs, parameters: [] };
  delete ended.retryAt;
  delete ended.reason;
  return reason === undefined ? ended : { ...ended, reason };
}

/** The job that its owner stops: at once between two runs, else when its run has ended. */
export function whenStopped(job: TrainingJob, graceMs: number, nowMs: number): TrainingJob {
  if (isOver(job)) return job;
  if (job.state === 'waiting') return over(job, 'stopped', 'It was stopped.', nowMs);
  return { ...job, state: 'stopping', graceMs };
}
