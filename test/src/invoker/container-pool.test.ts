import { describe, expect, test } from '@jest/globals';
import { sleep } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { containerLike } from '../simulation/delegates.js';
import { PoolHarness, kind, startMs } from './pool-harness.js';

const stemCell = { spec: bareSpec(kind, 128), initialCount: 1 };

describe('finding a container', () => {
  test('a warm container of the action is used again', async () => {
    const harness = await PoolHarness.open();
    const first = await harness.run('a');
    const second = await harness.run('a');
    expect(first.start).toBe('cold');
    expect(second).toMatchObject({ start: 'warm', container: first.container });
    expect(harness.factory.live).toHaveLength(1);
  });

  test('the container that was used last is taken first, so that the others can idle out', async () => {
    const harness = await PoolHarness.open();
    const [long, longer] = await harness.runAll([
      ['a', { ms: 500 }],
      ['a', { ms: 900 }],
    ]);
    expect(long?.container).not.toBe(longer?.container);
    const next = [await harness.run('a'), await harness.run('a')];
    expect(next.map(({ container }) => container)).toEqual([longer?.container, longer?.container]);
  });

  test('actions do not share containers', async () => {
    const harness = await PoolHarness.open();
    const one = await harness.run('a');
    const other = await harness.run('b');
    expect(other.start).toBe('cold');
    expect(other.container).not.toBe(one.container);
  });

  test('a container that died while idle is not used, and its memory is free again', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128 });
    const first = await harness.run('a');
    harness.factory.crash(first.container ?? '');
    await harness.clock.runFor(1);
    expect(harness.pool.snapshot().claimedMiB).toBe(0);
    const second = await harness.run('a');
    expect(second.start).toBe('cold');
    expect(second.container).not.toBe(first.container);
  });

  test('a job that wants its container discarded gets it discarded', async () => {
    const harness = await PoolHarness.open();
    const first = await harness.run('a', { disposition: 'discard' });
    expect(harness.factory.live).toHaveLength(0);
    const second = await harness.run('a');
    expect(second.start).toBe('cold');
    expect(second.container).not.toBe(first.container);
  });
});

describe('memory', () => {
  test('a container whose removal is slow does not make the pool forget those that came after it', async () => {
    let destroyed = 0;
    const slow = (factory: ContainerFactory): ContainerFactory => ({
      ...factory,
      create: async (spec) => {
        const container = await factory.create(spec);
        return containerLike(container, {
          destroy: () => container.destroy().then(() => sleep(harness.clock, destroyed++ === 0 ? 2000 : 10)),
        });
      },
    });
    const harness: PoolHarness = await PoolHarness.open({}, {}, slow);
    await harness.runAll([
      ['a', { ms: 300, disposition: 'discard' }],
      ['a', { ms: 300, disposition: 'discard' }],
    ]);
    await harness.clock.runFor(100);
    const first = await harness.run('a');
    await harness.clock.runFor(3000);
    expect(await harness.run('a')).toMatchObject({ start: 'warm', container: first.container });
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 128, containers: 1 });
  });

  test('is never exceeded, and the longest idle container goes first', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    const a = await harness.run('a');
    const b = await harness.run('b');
    await harness.run('c');
    expect(harness.mostMiB).toBe(256);
    expect((await harness.run('b')).container).toBe(b.container);
    expect((await harness.run('a')).container).not.toBe(a.container);
    expect(harness.liveMiB()).toBe(256);
  });

  test('a burst of many actions runs within it', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 384 });
    const ended = await harness.runAll(Array.from({ length: 40 }, (_, i) => [`action ${i % 13}`, { ms: i }]));
    expect(ended.filter(({ failure }) => failure !== undefined)).toEqual([]);
    expect(harness.mostMiB).toBeLessThanOrEqual(384);
  });

  test('an action without any gets some from one that keeps all of it busy', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128 });
    let stop = false;
    const greedy = async (): Promise<void> => {
      while (!stop) await harness.submit('greedy', { ms: 50 });
    };
    const work = Promise.all([greedy(), greedy(), greedy()]);
    await harness.clock.runFor(2000);
    const beforeMs = harness.clock.monotonicMs();
    const modest = await harness.run('modest', { ms: 50 });
    expect(modest.endedMs - beforeMs).toBeLessThan(1000);
    stop = true;
    await harness.clock.runUntil(work);
  });

  test('an action that wants more than there is fails at once and says so', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    const { failure, endedMs } = await harness.run('large', { memoryMiB: 512 });
    expect(failure).toBe("the action's memory, 512 MB, is more than this invoker has, 256 MB");
    expect(endedMs).toBe(0);
  });
});

describe('closing', () => {
  test('drops what waits, and what runs goes on', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    let ended = 0;
    for (let i = 0; i < 5; i++) void harness.submit('a', { ms: 1000 }).then(() => ended++);
    void harness.submit('b', { ms: 1000 }).then(() => ended++);
    await harness.clock.runFor(startMs + 100);
    const { waitingJobs } = harness.pool.snapshot();
    expect(waitingJobs).toBeGreaterThan(0);
    expect(harness.pool.dropWaiting(() => true)).toBe(waitingJobs);
    await harness.clock.runFor(60_000);
    expect([ended, harness.pool.snapshot().waitingJobs]).toEqual([6 - waitingJobs, 0]);
    // A run that could not begin in its container may still be submitted again.
    await harness.run('a');
    await harness.clock.runUntil(harness.pool.close());
  });

  test('ends every container, idle, busy and prewarmed, and starts no waiting job', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 512, stemCells: [stemCell] });
    await harness.clock.runUntil(harness.pool.prewarm());
    await harness.run('idle', { memoryMiB: 256 });
    let ended = 0;
    for (let i = 0; i < 6; i++) void harness.submit('busy', { ms: 60_000 }).then(() => ended++);
    await harness.clock.runFor(1000);
    expect(harness.factory.live.length).toBeGreaterThan(1);
    const waiting = harness.pool.snapshot().waitingJobs;
    expect(waiting).toBeGreaterThan(0);
    await harness.clock.runUntil(harness.pool.close());
    await harness.clock.runFor(1000);
    expect(harness.factory.live).toHaveLength(0);
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, containers: 0, waitingJobs: waiting });
    expect(ended).toBe(6 - waiting);
  });

  test('a container that was being made when the pool closed is ended', async () => {
    const harness = await PoolHarness.open();
    void harness.submit('a');
    await harness.clock.runFor(startMs / 2);
    await harness.clock.runUntil(harness.pool.close());
    await harness.clock.runFor(startMs);
    expect(harness.factory.live).toHaveLength(0);
  });
});
