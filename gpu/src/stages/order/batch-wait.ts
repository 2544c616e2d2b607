/** What is known when the first of the waiting requests of a function could start. Times in ms. */
export interface BatchQueue {
  waiting: number;
  /** The largest batch. */
  batch: number;
  /** How long the first one has waited for others. */
  waitedMs: number;
  /** Smoothed time between arrivals; undefined before the second one. */
  betweenMs: number | undefined;
  /** Until the first one has to start so as to meet its deadline; Infinity without one. */
  slackMs: number;
}

/** The longest that a request waits for others that could run with it, ms. */
export const longestBatchWaitMs = 10;
/** The part of what a deadline leaves that may be waited away. */
const slackPart = 0.1;

/**
 * How long the requests go on waiting for more to run with them, ms; 0: they start. No request waits for a batch that is
 * full, nor where no further request is to be expected within the limit, which is 10 ms and a tenth of what the deadline
 * leaves. PROTEAN, section 4.1, names this queuing delay as the cost of batches.
 */
export function batchWaitMs({ waiting, batch, waitedMs, betweenMs, slackMs }: BatchQueue): number {
  if (waiting >= batch || betweenMs === undefined) return 0;
  const leftMs = Math.min(longestBatchWaitMs, slackMs * slackPart) - waitedMs;
  return betweenMs <= leftMs ? Math.min(leftMs, betweenMs * (batch - waiting)) : 0;
}
