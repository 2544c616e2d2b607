import type { JsonValue } from '../json.js';

/** Work that can wait: a profile, a search, a training. */
export interface JobRequest {
  /** What is to be done; those who handle it know the form of the payload. */
  kind: string;
  /** What it is done for: of one kind and key there is one job at a time. */
  key: string;
  payload: JsonValue;
  /** Attempts, those cut short by a crash included; then it has failed. Default 3. */
  maxAttempts?: number;
  /** What it needs for itself, as `gpu/UUID`: no other job has it at the same time, in the whole cluster. */
  resource?: string;
}

/** What a body is told. */
export interface JobAttempt {
  /** From 1 on. */
  attempt: number;
  /** It has failed if this one does. */
  isLast: boolean;
  /** Aborted when its time is over, its resource is wanted for something else, or the process stops: the body ends soon. */
  signal: AbortSignal;
}

/**
 * Does the work. What it rejects with is the failure of the attempt; a rejection after its signal was aborted for want
 * of the resource, or by the end of the process, is none: it will be run again. A job may run again that has been done
 * already, when the process ended before that was noted.
 */
export type JobBody = (payload: JsonValue, attempt: JobAttempt) => Promise<void>;

/** How jobs of a kind are run. */
export interface HandlerOptions {
  /** Jobs of the kind that run at once here. */
  concurrency: number;
  /** Time for one attempt, ms. A body that goes on regardless keeps its place until it ends. */
  timeoutMs: number;
}

/** Has jobs of a kind run here. */
export interface JobHandler {
  /** Runs no more of them here: what runs is aborted, at no cost, and is run again by the next handler. */
  close(): Promise<void>;
}

/** A job that waits or runs. */
export interface PendingJob {
  kind: string;
  key: string;
  state: 'waiting' | 'running';
  /** Begun so far. */
  attempts: number;
}

/** A job that will not be tried again. */
export interface FailedJob {
  kind: string;
  key: string;
  attempts: number;
  reason: string;
  /** Epoch ms. */
  at: number;
}

/** Thrown by submit when as many jobs as may be are waiting; those who ask come again or do without. */
export class JobsFullError extends Error {
  override name = 'JobsFullError';
}

/** Thrown by every operation after close. */
export class JobsClosedError extends Error {
  override name = 'JobsClosedError';
}

/** Background work: durable, bounded, at least once, one at a time for each kind and key. */
export interface Jobs {
  /**
   * Takes a job; resolves when it would survive a power loss (in Redis: as well as Redis keeps it). False: one of its kind
   * and key waits, runs or is being submitted already, and stays as it is. Throws JobsFullError, JobsClosedError, and
   * RangeError for a payload that is too large; rejects with the error of what keeps the jobs.
   */
  submit(request: JobRequest): Promise<boolean>;
  /**
   * Runs jobs of a kind here from now on, those of earlier processes too; until then they wait. A kind has one handler in a
   * process. Where several processes have one, each job is run by one of them at a time.
   */
  handle(kind: string, options: HandlerOptions, body: JobBody): JobHandler;
  /** Work has come for what a job has for itself: it gives it up at once, wherever it runs, and runs again after a while. */
  interrupt(resource: string): void;
  /** What waits and runs in the whole cluster, oldest first. */
  pending(): Promise<PendingJob[]>;
  /** The last ones that failed, oldest first. */
  failed(): Promise<FailedJob[]>;
  /** Aborts what runs, waits for its end for a while, and closes; unfinished jobs run in the next process. */
  close(): Promise<void>;
}
