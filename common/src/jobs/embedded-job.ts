import type { JournalJob } from './job-journal.js';
import type { JobRequest } from './jobs.js';

/** A job of one process. */
export interface Job extends JournalJob {
  state: 'waiting' | 'running';
  /** Monotonic ms. */
  readyMs: number;
  abort?: AbortController;
  /** It is being aborted for no fault of its own. */
  interrupted: boolean;
}

/** Has a job that runs given up, for no fault of its own. */
export function interruptJob(job: Job, why: string): void {
  job.interrupted = true;
  job.abort?.abort(new Error(why));
}

/** What of a job its journal keeps. */
export function journalled({ id, request, attempts, interruptions }: Job): JournalJob {
  return { id, request, attempts, interruptions };
}

/** What there is one job of at a time. */
export function keyOf({ kind, key }: Pick<JobRequest, 'kind' | 'key'>): string {
  return JSON.stringify([kind, key]);
}
