// Idle containers.
import { describe, expect, test } from '@jest/globals';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Container, ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { containerLike } from '../simulation/delegates.js';
import { PoolHarness, runRequest } from './pool-harness.js';

describe('idle containers', () => {
  /** A harness whose freezing and thawing take a moment, as the kernel's do. */
  function slowToFreeze(harness: () => PoolHarness) {
    return (factory: ContainerFactory): ContainerFactory => ({
      ...factory,
      create: async (spec) => slow(await factory.create(spec), harness()),
    });
  }
  const slow = (container: Container, { clock }: PoolHarness): Container =>
    containerLike(container, {
      pause: () => sleep(clock, 50).then(() => container.pause()),
      resume: () => sleep(clock, 20).then(() => container.resume()),
    });

  async function slowHarness(): Promise<PoolHarness> {
    const harness: PoolHarness = await PoolHarness.open(
      { pauseGraceMs: 1000 },
      {},
      slowToFreeze(() => harness),
    );
    return harness;
  }

  test('are frozen after the grace, and thawed for the next run', async () => {
    const harness = await PoolHarness.open({ pauseGraceMs: 2000 });
    const first = await harness.run('a');
    await harness.clock.runFor(1000);
    const [container] = harness.factory.live;
    expect(container?.id).toBe(first.container);
    expect((await harness.run('a')).start).toBe('warm');
    await harness.clock.runFor(4000);
    await expect(
      container?.run({} as never, { timeoutMs: 1, logLimitBytes: 0, maxResultBytes: 0, truncationBytes: 0 }).outcome,
    ).rejects.toThrow('is paused');
    expect(await harness.run('a')).toMatchObject({ start: 'warm', container: first.container });
  });

  test('all runs that come while one thaws wait for it', async () => {
    const harness = await slowHarness();
    await harness.run('a', { concurrency: 4 });
    await harness.clock.runFor(5000);
    const ended = await harness.runAll(Array.from({ length: 4 }, () => ['a', { ms: 5, concurrency: 4 }]));
    expect(ended.map(({ start }) => start)).toEqual(['warm', 'warm', 'warm', 'warm']);
  });

  test('a run that comes while one freezes is not frozen', async () => {
    const harness = await slowHarness();
    await harness.run('a');
    // Sweeps run every second: at some of these moments a freeze is in progress.
    for (let ms = 1900; ms < 2200; ms += 7) {
      await harness.clock.runFor(ms);
      const beforeMs = harness.clock.monotonicMs();
      const { start, endedMs } = await harness.run('a', { ms: 5 });
      expect(start).toBe('warm');
      expect(endedMs - beforeMs).toBeLessThan(100);
      const again = await harness.run('a', { ms: 5 });
      expect(again.start).toBe('warm');
    }
  });

  describe('that are readied ahead', () => {
    const readied = { readiesAhead: true, namespace: 'ns' };
    const limits = { timeoutMs: 1000, logLimitBytes: 0, maxResultBytes: 1000, truncationBytes: 1000 };

    /**
     * Readies a container that uses a processor for `msPerS` while it waits; resolves with whether it is frozen after
     * `waitMs`.
     */
    async function waiting(msPerS: number | undefined, waitMs: number) {
      const harness: PoolHarness = await PoolHarness.open(
        { pauseGraceMs: 2000 },
        msPerS === undefined ? {} : { processorMs: () => (harness.clock.monotonicMs() / 1000) * msPerS },
      );
      const first = await harness.run('a', readied);
      await harness.clock.runFor(waitMs);
      const container = harness.factory.live.find(({ id }) => id !== first.container);
      const run = container?.run(runRequest(1), limits).outcome.then(
        () => false,
        (error: Error) => error.message.includes('is paused'),
      );
      const frozen = await harness.clock.runUntil(Promise.resolve(run));
      return { harness, first, container, frozen };
    }

    test('are not frozen before their first run', async () => {
      expect((await waiting(0, 60_000)).frozen).toBe(false);
    });

    test('are frozen after their first run', async () => {
      const harness: PoolHarness = await PoolHarness.open({ pauseGraceMs: 2000 }, { processorMs: () => 0 });
      await harness.run('a', readied);
      await harness.clock.runFor(1000);
      await harness.runAll([
        ['a', { ...readied, ms: 100 }],
        ['a', { ...readied, ms: 100 }],
      ]);
      await harness.clock.runFor(5000);
      const states = await Promise.all(
        harness.factory.live.slice(0, 2).map((one) => one.run(runRequest(1), limits).outcome.catch(String)),
      );
      expect(states).toEqual([expect.stringContaining('is paused'), expect.stringContaining('is paused')]);
    });

    test.each([
      ['work', 100],
      ['cannot be looked at', undefined],
    ])('are frozen if they %s, and thawed for their first run', async (_, msPerS) => {
      const { harness, container, first, frozen } = await waiting(msPerS, 8000);
      expect(frozen).toBe(true);
      const ended = await harness.runAll([
        ['a', { ...readied, ms: 100 }],
        ['a', { ...readied, ms: 100 }],
      ]);
      expect(ended.map((one) => one.container).sort()).toEqual([first.container, container?.id].sort());
    });
  });

  test('are removed after long', async () => {
    const harness = await PoolHarness.open({ idleContainerMs: 5000 });
    await harness.run('a');
    await harness.clock.runFor(4000);
    expect(harness.factory.live).toHaveLength(1);
    await harness.clock.runFor(3000);
    expect(harness.factory.live).toHaveLength(0);
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, containers: 0 });
  });
});
