import type { JournalJob } from './job-journal.js';
import type { JobRun } from './job-run.js';

/** A job of one process. */
export interface Job extends JournalJob {
  /** Monotonic ms. */
  readyMs: number;
  /** Absent: it waits. */
  run?: JobRun;
}

/** What of a job its journal keeps. */
export function journalled({ id, request, attempts, interruptions }: Job): JournalJob {
  return { id, request, attempts, interruptions };
}
