// Jobs that run together as one batch.
import { describe, expect, test } from '@jest/globals';
import { PoolHarness } from './pool-harness.js';

const many = (count: number, ms: number, batch: number): [string, { ms: number; batch: number }][] =>
  Array.from({ length: count }, () => ['a', { ms, batch }]);

describe('batches', () => {
  test('jobs that wait for the first start run together, no more than may', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128 });
    const ended = await harness.runAll(many(10, 20, 4));
    expect(ended.map(({ batch }) => batch)).toEqual([4, 4, 4, 4, 4, 4, 4, 4, 2, 2]);
  });

  test('a job on its own does not wait for others', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a', { batch: 8, ms: 5 });
    const beforeMs = harness.clock.monotonicMs();
    await harness.clock.runFor(60_000);
    const ended = await harness.run('a', { batch: 8, ms: 5 });
    expect(ended).toMatchObject({ batch: 1, start: 'warm', endedMs: beforeMs + 60_005 });
  });

  test('those that come soon after each other wait a little for the rest', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a', { batch: 4, ms: 5 });
    const ended = [];
    for (let job = 0; job < 12; job += 1) {
      ended.push(harness.submit('a', { batch: 4, ms: 5 }));
      await harness.clock.runFor(1);
    }
    const sizes = (await harness.clock.runUntil(Promise.all(ended))).map(({ batch }) => batch ?? 0);
    expect(Math.max(...sizes)).toBe(4);
    expect(sizes.filter((size) => size > 1).length).toBeGreaterThan(6);
  });

  test('a burst of batches does not start a container for each job', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a', { batch: 8, ms: 50 });
    await harness.runAll(many(16, 50, 8));
    expect(harness.factory.live.length).toBeLessThanOrEqual(2);
  });
});
