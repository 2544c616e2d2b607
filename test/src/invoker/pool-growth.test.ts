// The number of containers of an action, and the number of their concurrent runs.
import { describe, expect, test } from '@jest/globals';
import type { ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { PoolHarness } from './pool-harness.js';

describe('how many containers', () => {
  test('a burst of runs far shorter than a start makes no further ones', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a');
    await harness.runAll(Array.from({ length: 50 }, () => ['a', { ms: 1 }]));
    expect(harness.factory.live).toHaveLength(1);
  });

  test('long runs get their own', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a', { ms: 1000 });
    const beforeMs = harness.clock.monotonicMs();
    const ended = await harness.runAll(Array.from({ length: 6 }, () => ['a', { ms: 1000 }]));
    expect(new Set(ended.map(({ container }) => container)).size).toBeGreaterThanOrEqual(5);
    expect(harness.clock.monotonicMs() - beforeMs).toBeLessThan(2500);
  });

  test('a run that turns out to be long does not hold up the next', async () => {
    const harness = await PoolHarness.open();
    for (let i = 0; i < 5; i++) await harness.run('a', { ms: 1 });
    const stuck = harness.submit('a', { ms: 30_000 });
    const beforeMs = harness.clock.monotonicMs();
    expect((await harness.run('a', { ms: 1 })).endedMs - beforeMs).toBeLessThan(1000);
    await harness.clock.runUntil(stuck);
  });

  test('no more are started at once than may be', async () => {
    let most = 0;
    let starting = 0;
    const counted = (factory: ContainerFactory): ContainerFactory => ({
      ...factory,
      create: (spec) => {
        most = Math.max(most, ++starting);
        return factory.create(spec).finally(() => starting--);
      },
    });
    const harness = await PoolHarness.open({ maxStarting: 2, memoryMiB: 4096 }, {}, counted);
    const ended = await harness.runAll(Array.from({ length: 9 }, (_, i) => [`action ${i}`]));
    expect(ended.every(({ start }) => start === 'cold')).toBe(true);
    expect(most).toBe(2);
  });

  test('a failed start fails one job with the reason; the others get theirs', async () => {
    const harness = await PoolHarness.open({}, { failing: 0.5 });
    const ended = await harness.runAll(Array.from({ length: 20 }, (_, i) => [`action ${i}`, { ms: 200 }]));
    const failed = ended.filter(({ failure }) => failure !== undefined);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(20);
    for (const { failure } of failed) expect(failure).toBe('The container did not start.');
  });

  test('a kind that nobody can start fails its job', async () => {
    const harness = await PoolHarness.open();
    expect((await harness.run('a', { kind: 'cobol:85' })).failure).toBe("There is no runtime for 'cobol:85'.");
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, waitingJobs: 0 });
  });
});

describe('concurrency', () => {
  test('a container takes as many runs at once as it may, once its code is loaded', async () => {
    const harness = await PoolHarness.open();
    const ended = await harness.runAll(Array.from({ length: 4 }, () => ['a', { ms: 50, concurrency: 4 }]));
    expect(new Set(ended.map(({ container }) => container)).size).toBe(1);
    expect(ended.map(({ start }) => start)).toEqual(['cold', 'warm', 'warm', 'warm']);
    expect(ended[0]?.beside).toBe(1);
    expect(Math.max(...ended.map(({ beside = 0 }) => beside))).toBe(4);
  });

  test('and never more', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    const ended = await harness.runAll(Array.from({ length: 30 }, () => ['a', { ms: 50, concurrency: 3 }]));
    expect(Math.max(...ended.map(({ beside = 0 }) => beside))).toBe(3);
  });

  test('a discarded one ends its other runs before it goes', async () => {
    const harness = await PoolHarness.open();
    await harness.run('a', { concurrency: 2 });
    const [short, long] = await harness.runAll([
      ['a', { ms: 10, concurrency: 2, disposition: 'discard' }],
      ['a', { ms: 500, concurrency: 2 }],
    ]);
    expect(short?.container).toBe(long?.container);
    expect(long?.endedMs).toBeGreaterThan(short?.endedMs ?? Infinity);
    await harness.clock.runFor(1);
    expect(harness.factory.live).toHaveLength(0);
  });
});
