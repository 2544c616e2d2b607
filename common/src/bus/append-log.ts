/** An entry read back at open. */
export interface LogEntry {
  /** Rises strictly from entry to entry, over restarts too. */
  position: number;
  /** What the entry belongs to: a topic's name, or the name of another user of the log. */
  stream: string;
  payload: Uint8Array;
}

/** Something in a log file that could not be read; the rest was. */
export interface LogDamage {
  file: string;
  /** Byte offset within the file. */
  offset: number;
  reason: 'torn tail' | 'bad checksum' | 'unreadable';
}

/**
 * Thrown by append and rejected by synced while the log cannot be written. What was appended before is kept in memory, and is
 * written as soon as that is possible: it may be there after all.
 */
export class LogFailedError extends Error {
  override name = 'LogFailedError';
}

/** Thrown by append when more is waiting to be written than the log may hold in memory. */
export class LogBehindError extends Error {
  override name = 'LogBehindError';
}

/**
 * A durable append log shared by several streams, with group commit: entries gathered while one write and sync
 * is under way go out together in the next.
 */
export interface AppendLog {
  /**
   * Appends and returns the entry's position at once. It goes out with its group: at the end of this turn of the
   * event loop if a caller waits for it, else within about 20 ms. Throws LogFailedError, LogBehindError.
   */
  append(stream: string, payload: Uint8Array | string): number;
  /** Resolves when the entry at `position` and all before it would survive a power loss; rejects if they cannot. */
  synced(position: number): Promise<void>;
  /** The oldest position such that the entries from it on take at most `bytes` on disk (whole files). */
  oldestWithin(bytes: number): number;
  /** Allows entries before `position` to be dropped (whole files at a time). */
  release(position: number): void;
  /** Writes and syncs what is gathered, then closes. Rejects with LogFailedError if not all that was appended is kept. */
  close(): Promise<void>;
}
