import { describe, expect, test } from '@jest/globals';
import { sleep } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { Container, ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { containerLike } from '../simulation/delegates.js';
import { PoolHarness, initMs, kind, startMs } from './pool-harness.js';

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

  test('a stem cell serves the first run of an action, and is replaced', async () => {
    const harness = await PoolHarness.open({ stemCells: [stemCell] });
    await harness.clock.runUntil(harness.pool.prewarm());
    expect(harness.pool.snapshot().prewarmed).toBe(1);
    const beforeMs = harness.clock.monotonicMs();
    const first = await harness.run('a', { ms: 0 });
    expect(first).toMatchObject({ start: 'prewarmed', endedMs: beforeMs + initMs });
    expect(harness.pool.snapshot().prewarmed).toBe(0);
    await harness.clock.runFor(100 + startMs);
    expect(harness.pool.snapshot().prewarmed).toBe(1);
    expect((await harness.run('b')).start).toBe('prewarmed');
  });

  test('an action that loads modules ahead gets a stem cell with these for its next start', async () => {
    const harness = await PoolHarness.open({ stemCells: [stemCell] });
    await harness.clock.runUntil(harness.pool.prewarm());
    const imports = ['numpy'];
    // The one there is has a part of what is wanted: nothing.
    expect((await harness.run('a', { imports })).start).toBe('prewarmed');
    await harness.clock.runFor(100 + startMs);
    expect(harness.pool.snapshot().prewarmed).toBe(2);
    expect(harness.factory.live.map(({ spec }) => spec.imports)).toContainEqual(imports);
    const [ready] = harness.factory.live.filter(({ spec }) => spec.imports.length > 0).slice(-1);
    expect(await harness.run('b', { imports })).toMatchObject({ start: 'prewarmed', container: ready?.id });
    // One with more than is wanted is no use.
    expect((await harness.run('c')).container).not.toBe(ready?.id);
  });

  test('stem cells that no action has wanted for long are given up', async () => {
    const harness = await PoolHarness.open({});
    await harness.run('a', { imports: ['numpy'], discard: true });
    await harness.clock.runFor(100 + startMs);
    expect(harness.pool.snapshot().prewarmed).toBe(1);
    await harness.clock.runFor(1_300_000);
    expect(harness.pool.snapshot()).toMatchObject({ prewarmed: 0, claimedMiB: 0 });
  });

  test('of stem cells for modules there is a bounded number', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128 * 100 });
    for (let index = 0; index < 30; index++) {
      await harness.run(`a${index}`, { imports: [`m${index}`], discard: true });
      await harness.clock.runFor(100 + startMs);
    }
    expect(harness.pool.snapshot().prewarmed).toBe(16);
    expect(harness.factory.live.map(({ spec }) => spec.imports[0])).toContain('m29');
  });

  test('a stem cell of another size is left alone', async () => {
    const harness = await PoolHarness.open({ stemCells: [stemCell] });
    await harness.clock.runUntil(harness.pool.prewarm());
    expect((await harness.run('a', { memoryMiB: 256 })).start).toBe('cold');
    expect(harness.pool.snapshot().prewarmed).toBe(1);
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
    const first = await harness.run('a', { discard: true });
    expect(harness.factory.live).toHaveLength(0);
    const second = await harness.run('a');
    expect(second.start).toBe('cold');
    expect(second.container).not.toBe(first.container);
  });
});

describe('containers that are readied ahead', () => {
  test('after a cold start there is one for the next run that finds the first busy', async () => {
    const harness = await PoolHarness.open();
    const options = { ms: 500, readiesAhead: true };
    const first = await harness.run('a', options);
    expect(first.start).toBe('cold');
    await harness.clock.runFor(startMs + initMs);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 2, idle: 2 });
    const both = await harness.runAll([
      ['a', options],
      ['a', options],
    ]);
    expect(both.map(({ start }) => start).sort()).toEqual(['prewarmed', 'warm']);
    // Taken, it has a successor.
    await harness.clock.runFor(startMs + initMs);
    expect(harness.pool.snapshot().containers).toBe(3);
  });

  test('not beyond the memory, and nobody gives way to them', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    await harness.run('b');
    await harness.run('a', { readiesAhead: true });
    await harness.clock.runFor(1000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 2, claimedMiB: 256 });
    expect((await harness.run('b')).start).toBe('warm');
  });

  test('one that cannot be readied is no loss', async () => {
    const harness = await PoolHarness.open({}, { failing: 0 }, (factory) => {
      let made = 0;
      const create: ContainerFactory['create'] = (spec) =>
        ++made === 2 ? Promise.reject(new Error('it did not start')) : factory.create(spec);
      return { ...factory, create };
    });
    await harness.run('a', { readiesAhead: true });
    await harness.clock.runFor(1000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, claimedMiB: 128 });
    expect((await harness.run('a')).start).toBe('warm');
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
      ['a', { ms: 300, discard: true }],
      ['a', { ms: 300, discard: true }],
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

  test('stem cells are given up for an action that fits only then', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 512, stemCells: [{ ...stemCell, initialCount: 2 }] });
    await harness.clock.runUntil(harness.pool.prewarm());
    expect((await harness.run('large', { memoryMiB: 512 })).start).toBe('cold');
  });

  test('so is one that was still starting', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 512, stemCells: [stemCell] });
    void harness.pool.prewarm();
    expect((await harness.run('large', { memoryMiB: 512 })).start).toBe('cold');
  });

  test('an action that wants more than there is fails at once and says so', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256 });
    const { failure, endedMs } = await harness.run('large', { memoryMiB: 512 });
    expect(failure).toBe("the action's memory, 512 MB, is more than this invoker has, 256 MB");
    expect(endedMs).toBe(0);
  });
});

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
    for (const { failure } of failed) expect(failure).toBe('It did not start.');
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
      ['a', { ms: 10, concurrency: 2, discard: true }],
      ['a', { ms: 500, concurrency: 2 }],
    ]);
    expect(short?.container).toBe(long?.container);
    expect(long?.endedMs).toBeGreaterThan(short?.endedMs ?? Infinity);
    await harness.clock.runFor(1);
    expect(harness.factory.live).toHaveLength(0);
  });
});

describe('idle containers', () => {
  /** Freezing and thawing that take a moment, as the kernel's do. */
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
    // Sweeps come every second: at some of these moments a freeze is under way.
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

describe('closing', () => {
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
