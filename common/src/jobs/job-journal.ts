import type { AppendLog, LogEntry } from '../bus/append-log.js';
import type { JobRequest } from './jobs.js';

/** A job as the journal knows it. */
export interface JournalJob {
  /** Of the cluster's life: rises from job to job. */
  id: number;
  request: JobRequest;
  attempts: number;
  /** How often it gave up its resource, or was stopped with its process. */
  interruptions: number;
}

type Entry = { op: 'job'; job: JournalJob } | { op: 'end'; id: number };

const stream = 'jobs';

/** After so many entries what is pending is written again, and what lies before is dropped. */
const entriesPerFile = 1000;

/** Which jobs are pending, in an append log: every change of a job is the whole job again. */
export class JobJournal {
  private readonly restored = new Map<number, JournalJob>();
  private log: AppendLog | undefined;
  private entries = 0;

  /** Takes an entry of an earlier process. Throws SyntaxError for one that is none. */
  restore({ payload }: Pick<LogEntry, 'payload'>): void {
    const entry = JSON.parse(Buffer.from(payload).toString('utf8')) as Entry;
    if (entry.op === 'job') this.restored.set(entry.job.id, entry.job);
    else this.restored.delete(entry.id);
  }

  /** Starts writing to the log; gives the jobs that are left, oldest first. */
  open(log: AppendLog): JournalJob[] {
    this.log = log;
    const left = [...this.restored.values()].sort((one, other) => one.id - other.id);
    this.restored.clear();
    return left;
  }

  /** Notes a job as it is now; resolves when the note would survive a power loss. */
  async note(job: JournalJob, pending: () => Iterable<JournalJob>): Promise<void> {
    await this.append({ op: 'job', job }, pending);
  }

  /** Notes that a job is over. */
  async end(id: number, pending: () => Iterable<JournalJob>): Promise<void> {
    await this.append({ op: 'end', id }, pending);
  }

  async close(): Promise<void> {
    await this.log?.close();
  }

  private async append(entry: Entry, pending: () => Iterable<JournalJob>): Promise<void> {
    const log = this.log;
    if (log === undefined) throw new Error('the journal is not open');
    const position = log.append(stream, JSON.stringify(entry));
    this.entries += 1;
    const kept = this.entries >= entriesPerFile ? this.rewrite(log, position, pending()) : undefined;
    await log.synced(position);
    if (kept === undefined) return;
    await log.synced(kept.last);
    log.release(kept.first);
  }

  /** Writes what is pending behind `position`; gives where the first and the last entry that matter are. */
  private rewrite(log: AppendLog, position: number, pending: Iterable<JournalJob>): { first: number; last: number } {
    this.entries = 0;
    const positions = Array.from(pending, (job) =>
      log.append(stream, JSON.stringify({ op: 'job', job } satisfies Entry)),
    );
    return { first: positions[0] ?? position, last: positions.at(-1) ?? position };
  }
}
