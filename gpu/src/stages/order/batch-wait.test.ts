import { describe, expect, test } from '@jest/globals';
import { batchWaitMs, longestBatchWaitMs } from './batch-wait.js';

const queue = { waiting: 1, batch: 4, waitedMs: 0, betweenMs: 1, slackMs: Infinity };

describe('how long a request waits for others to run with', () => {
  test('no longer than the missing ones take to come', () => {
    expect(batchWaitMs(queue)).toBe(3);
    expect(batchWaitMs({ ...queue, waiting: 3, waitedMs: 2 })).toBe(1);
  });

  test('never once the batch is full, nor before it is known that others come', () => {
    expect(batchWaitMs({ ...queue, waiting: 4 })).toBe(0);
    expect(batchWaitMs({ ...queue, betweenMs: undefined })).toBe(0);
  });

  test('not where no request is expected within the limit', () => {
    expect(batchWaitMs({ ...queue, betweenMs: longestBatchWaitMs + 1 })).toBe(0);
    expect(batchWaitMs({ ...queue, betweenMs: 5, waitedMs: longestBatchWaitMs - 4 })).toBe(0);
  });

  test('at most a tenth of what its deadline leaves, and not at all where that is past', () => {
    expect(batchWaitMs({ ...queue, batch: 100, slackMs: 50 })).toBe(5);
    expect(batchWaitMs({ ...queue, slackMs: -1 })).toBe(0);
  });

  test('never longer than the limit in all', () => {
    for (let waitedMs = 0, steps = 0; steps < 100; steps += 1) {
      const waitMs = batchWaitMs({ ...queue, batch: 1000, waitedMs });
      if (waitMs === 0) return expect(waitedMs).toBeLessThanOrEqual(longestBatchWaitMs);
      waitedMs += waitMs;
    }
    throw new Error('It waits for ever.');
  });
});
