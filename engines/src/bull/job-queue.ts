import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { JobRequest } from '@gpuwhisk/common/jobs/jobs';

/** What is kept of a job. */
export interface KeptJob {
  request: JobRequest;
  /** Rises from job to job of all kinds. */
  number: number;
  attempts: number;
  interruptions: number;
}

/** A job that this process has the lock of. */
export interface LockedJob {
  readonly kept: KeptJob;
  /** Keeps the lock for as long again; false: it was lost. */
  extend(): Promise<boolean>;
  /** Writes what is kept of it. Rejects where the lock was lost. */
  write(kept: KeptJob): Promise<void>;
  /** Gives it back, to be taken again after `delayMs`. Rejects where the lock was lost. */
  giveBack(delayMs: number): Promise<void>;
  /** Removes it. Rejects where the lock was lost. */
  remove(): Promise<void>;
}

/** Jobs of one kind. */
export interface JobQueue {
  /** Whether a job of this key waits or runs. */
  has(key: string): Promise<boolean>;
  add(job: KeptJob): Promise<void>;
  /** The job that has waited longest, with its lock; undefined: none is ready. */
  take(): Promise<LockedJob | undefined>;
  /** Releases jobs that no longer wait and jobs without a lock. */
  sweep(): Promise<void>;
  list(): Promise<{ kept: KeptJob; isRunning: boolean }[]>;
  /** Jobs that wait and run. */
  count(): Promise<number>;
  close(): Promise<void>;
}

export interface JobQueueOptions {
  /** For all commands of all queues. */
  redis: Redis;
  prefix: string;
  kind: string;
  /** How long a lock lasts that is not extended, ms. */
  lockMs: number;
  /** Epoch ms. */
  now: () => number;
}

/** The libraries that keep queues of jobs in Redis. Neither finds the jobs of the other. */
export type JobQueueLibrary = 'bullmq' | 'bull';

/** Loads one of them. */
export async function loadJobQueue(library: JobQueueLibrary): Promise<(options: JobQueueOptions) => JobQueue> {
  if (library === 'bull') return (await import('./bull-queue.js')).openBullQueue;
  return (await import('./bullmq-queue.js')).openBullmqQueue;
}

/** An id that both libraries take: any key may have colons, or be a number. */
export function idOf(key: string): string {
  return `k${createHash('sha256').update(key).digest('hex')}`;
}
