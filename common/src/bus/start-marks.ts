import { ShortLivedMap } from '../short-lived-map.js';
import type { AppendLog, LogEntry } from './append-log.js';

/** The log stream that start marks are in. */
export const markStream = 'marks';

/**
 * Durable notes that work on a message began, in the log that holds the messages. A note lasts at least as long as
 * the message it belongs to: it lies behind it in the log, and is carried forward with it.
 */
export class StartMarks {
  /** Marks of messages that are not done. */
  private readonly current = new ShortLivedMap<string, true>();
  private readonly earlier = new Set<string>();
  private log: AppendLog | undefined;

  /** Takes an entry of an earlier life. */
  restore(entry: LogEntry): void {
    const id = Buffer.from(entry.payload).toString('utf8');
    this.current.set(id, true);
    this.earlier.add(id);
  }

  /** Starts the present life: of the earlier marks, those of unfinished messages still matter. */
  open(log: AppendLog, unfinishedIds: () => ReadonlySet<string | undefined>): void {
    this.log = log;
    if (this.earlier.size === 0) return;
    const ids = unfinishedIds();
    for (const id of this.earlier) if (!ids.has(id)) this.forget(id);
  }

  /** Notes that work on `id` starts now; the function returned waits until the note would survive a power loss. */
  mark(id: string): () => Promise<void> {
    const log = this.log;
    if (!log) throw new Error('the log is not open');
    const position = log.append(markStream, id);
    this.current.set(id, true);
    return () => log.synced(position);
  }

  /** Whether an earlier life started work on `id`, whose message is not done. */
  startedBefore(id: string): boolean {
    return this.earlier.has(id);
  }

  /** The message of `id` is done. */
  forget(id: string): void {
    this.current.delete(id);
    this.earlier.delete(id);
  }

  /** The message of `id` was appended again: its mark must lie behind it. */
  carry(id: string): void {
    if (this.current.has(id)) this.mark(id);
  }
}
