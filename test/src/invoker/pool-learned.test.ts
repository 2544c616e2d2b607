// Containers with learned modules: how many are ready, and how they pass from function to function of a namespace.
import { describe, expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { planReady } from '@gpuwhisk/invoker/pool/learned-cells';
import { PoolHarness, kind, startMs } from './pool-harness.js';
import type { Ended, JobOptions } from './pool-harness.js';

const refillMs = 100 + startMs;
const imports = ['numpy'];
const options = { stemCellsOnDemand: true, reusesLearned: true, memoryMiB: 4096 };

const jobOf = (namespace = 'n'): JobOptions => ({
  namespace,
  imports,
  learned: { namespace, takesMore: true, savesMs: 1000 },
});

/** A pool with one container that has the module. */
async function ready(more: object = {}): Promise<PoolHarness> {
  const harness = await PoolHarness.open({ ...options, ...more }, { unloading: 'prewarmed' });
  harness.pool.foresee({ ...bareSpec(kind, 128), ...jobOf() });
  await harness.clock.runFor(refillMs);
  return harness;
}

const starts = (ended: readonly Ended[]): unknown[] => ended.map(({ start }) => start);

describe('a container with learned modules', () => {
  test('passes to another function of its namespace before a new one is made', async () => {
    const harness = await ready();
    const first = await harness.run('a', jobOf());
    const second = await harness.run('b', jobOf());
    expect(first.start).toBe('injected');
    expect(second).toMatchObject({ start: 'injected', container: first.container });
    expect((await harness.run('a', jobOf())).start).toBe('injected');
  });

  test('stays with a function whose code takes longer to load than the modules save', async () => {
    const harness = await ready({ learnedMiB: 64 });
    const first = await harness.run('a', { ...jobOf(), loadMs: 1001 });
    const second = await harness.run('b', jobOf());
    expect(second.container).not.toBe(first.container);
    expect(await harness.run('a', jobOf())).toMatchObject({ start: 'warm', container: first.container });
  });

  test('is waited for by functions that are called at once', async () => {
    const harness = await ready();
    const ended = await harness.runAll(Array.from({ length: 8 }, (_, index) => [`a${index}`, jobOf()]));
    expect(starts(ended)).toEqual(Array(8).fill('injected'));
    expect(Math.max(...ended.map(({ endedMs }) => endedMs))).toBeLessThan(refillMs + 500);
  });

  test('is waited for no longer than half of the time that it saves', async () => {
    let made = 0;
    const harness = await PoolHarness.open(options, { unloading: 'prewarmed' }, (factory) => ({
      ...factory,
      prewarm: (spec) => (++made === 1 ? factory.prewarm(spec) : Promise.reject(new Error('it did not start'))),
    }));
    harness.pool.foresee({ ...bareSpec(kind, 128), ...jobOf() });
    await harness.clock.runFor(refillMs);
    const long = harness.submit('a', { ...jobOf(), ms: 60_000 });
    const beganMs = harness.clock.monotonicMs();
    const learned = { namespace: 'n', takesMore: true, savesMs: 400 };
    const { start, endedMs } = await harness.run('b', { ...jobOf(), learned });
    expect(start).toBe('cold');
    expect(endedMs - beganMs).toBeGreaterThanOrEqual(200);
    expect(endedMs - beganMs).toBeLessThan(200 + startMs + 50);
    await harness.clock.runUntil(long);
  });

  test('never passes to another namespace, nor to code of another owner', async () => {
    const harness = await ready();
    const first = await harness.run('a', jobOf());
    for (const other of [jobOf('other'), { ...jobOf(), codeOf: 'vendor' }]) {
      const ended = await harness.run('b', { ...other, disposition: 'discard' });
      expect(ended.container).not.toBe(first.container);
    }
  });

  test('stays with its function where reuse is off', async () => {
    const harness = await ready({ reusesLearned: false });
    const first = await harness.run('a', jobOf());
    expect((await harness.run('b', jobOf())).container).not.toBe(first.container);
  });

  test('serves a further instance of a busy function at once', async () => {
    const harness = await ready();
    await harness.run('a', jobOf());
    await harness.clock.runFor(refillMs);
    const long = harness.submit('a', { ...jobOf(), ms: 5000 });
    await harness.clock.runFor(20);
    const beganMs = harness.clock.monotonicMs();
    const { start, endedMs } = await harness.run('a', jobOf());
    expect(start).toBe('injected');
    expect(endedMs - beganMs).toBeLessThan(startMs / 2);
    await harness.clock.runUntil(long);
  });
});

describe('a container that a function waits for', () => {
  /** A pool whose factory can copy containers with modules from the second one on. */
  async function copying(copied: boolean): Promise<PoolHarness> {
    const wrap = (factory: ContainerFactory): ContainerFactory => ({
      ...factory,
      copy: (spec) => (copied ? factory.prewarm(spec) : Promise.resolve(undefined)),
    });
    // None is made ahead: containers of others take all memory that there is for these.
    return PoolHarness.open({ ...options, learnedMiB: 1 }, { unloading: 'prewarmed' }, wrap);
  }

  test('has the modules where it can be a copy, and passes on to the next function', async () => {
    const harness = await copying(true);
    const first = await harness.run('a', jobOf());
    expect(first.start).toBe('cold');
    expect(harness.factory.live.map(({ spec }) => spec.imports)).toEqual([imports]);
    expect(await harness.run('b', jobOf())).toMatchObject({ start: 'injected', container: first.container });
    const other = await harness.run('c', jobOf('other'));
    expect(other.container).not.toBe(first.container);
  });

  test('has none of them where it cannot', async () => {
    const harness = await copying(false);
    await harness.run('a', jobOf());
    expect(harness.factory.live.map(({ spec }) => spec.imports)).toEqual([[]]);
    expect((await harness.run('b', jobOf())).start).toBe('cold');
  });
});

describe('a container with learned modules, of another memory', () => {
  const resizes = { unloading: 'prewarmed', resizes: true } as const;

  test('serves an action with the memory that this one has, which is claimed', async () => {
    const harness = await PoolHarness.open({ ...options, learnedMiB: 64 }, resizes);
    harness.pool.foresee({ ...bareSpec(kind, 128), ...jobOf() });
    await harness.clock.runFor(refillMs);
    const [ready] = harness.factory.live;
    const first = await harness.run('a', { ...jobOf(), memoryMiB: 512 });
    expect(first).toMatchObject({ start: 'injected', container: ready?.id });
    expect(ready?.spec.memoryMiB).toBe(512);
    expect(harness.pool.snapshot().claimedMiB).toBe(512);
    const second = await harness.run('b', { ...jobOf(), memoryMiB: 256 });
    expect(second).toMatchObject({ start: 'injected', container: ready?.id });
    expect(harness.pool.snapshot().claimedMiB).toBe(harness.liveMiB());
  });

  test('claims what it really takes until an action gets it', async () => {
    const harness = await PoolHarness.open(options, { ...resizes, realMiB: 100 });
    harness.pool.foresee({ ...bareSpec(kind, 1024), ...jobOf() });
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot().claimedMiB).toBe(1024);
    const { container } = await harness.run('a', { ...jobOf(), memoryMiB: 1024 });
    await harness.clock.runFor(refillMs);
    const waiting = harness.factory.live.filter(({ id }) => id !== container);
    expect(waiting.map(({ spec }) => spec.memoryMiB)).toEqual(waiting.map(() => 200));
    expect(waiting.length).toBeGreaterThan(0);
    expect(harness.pool.snapshot().claimedMiB).toBe(1024 + 200 * waiting.length);
    const other = await harness.run('b', { ...jobOf(), memoryMiB: 1024 });
    expect(other).toMatchObject({ start: 'injected', container: waiting[0]?.id });
    expect(waiting[0]?.spec.memoryMiB).toBe(1024);
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot().claimedMiB).toBe(harness.liveMiB());
  });

  test('is made once, and no more, where it takes more than all may', async () => {
    let made = 0;
    const harness = await PoolHarness.open(
      { ...options, learnedMiB: 1024 },
      { ...resizes, realMiB: 2048 },
      (factory) => ({ ...factory, prewarm: (spec) => (made++, factory.prewarm(spec)) }),
    );
    harness.pool.foresee({ ...bareSpec(kind, 3072), ...jobOf() });
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot()).toMatchObject({ prewarmed: 0, claimedMiB: 0 });
    for (let round = 0; round < 3; round++) {
      const learned = { namespace: 'n', takesMore: true, savesMs: 1000 + round };
      expect((await harness.run('a', { ...jobOf(), learned, memoryMiB: 3072, disposition: 'discard' })).start).toBe(
        'cold',
      );
      await harness.clock.runFor(refillMs);
    }
    expect(made).toBe(1);
    expect(harness.pool.learnedMiB()).toBe(0);
  });

  test('is given up before any idle container of a function, and made again when there is memory', async () => {
    const harness = await PoolHarness.open({ ...options, memoryMiB: 640, learnedMiB: 64 }, resizes);
    const idle = await harness.run('idle', { memoryMiB: 128 });
    harness.pool.foresee({ ...bareSpec(kind, 128), ...jobOf() });
    await harness.clock.runFor(refillMs);
    expect(harness.pool.learnedMiB()).toBeGreaterThan(0);
    await harness.run('large', { memoryMiB: 512, disposition: 'discard' });
    expect(await harness.run('idle', { memoryMiB: 128 })).toMatchObject({ start: 'warm', container: idle.container });
    await harness.clock.runFor(1000 + refillMs);
    expect(harness.pool.learnedMiB()).toBeGreaterThan(0);
  });

  test('waits as others do where there is not that much memory', async () => {
    const harness = await PoolHarness.open({ ...options, memoryMiB: 500 }, resizes);
    harness.pool.foresee({ ...bareSpec(kind, 128), ...jobOf() });
    await harness.clock.runFor(refillMs);
    const long = harness.submit('long', { memoryMiB: 256, ms: 5000, disposition: 'discard' });
    await harness.clock.runFor(refillMs);
    const ended = await harness.run('a', { ...jobOf(), memoryMiB: 256 });
    expect(ended.endedMs).toBeGreaterThan((await long).endedMs);
    expect(harness.mostMiB).toBeLessThanOrEqual(500);
    await harness.clock.runFor(10);
    expect(harness.pool.snapshot().claimedMiB).toBe(harness.liveMiB());
  });
});

describe('of sets of learned modules', () => {
  const set = { namespace: 'n', savesMs: 1000, expected: 1, memoryMiB: 100 };

  test('each has a container ready, and often started ones more, up to a bound', () => {
    expect(planReady([set, { ...set, expected: 2.5 }, { ...set, expected: 50 }], Infinity)).toEqual([1, 2, 4]);
    expect(planReady([{ ...set, expected: 0.01 }], Infinity)).toEqual([0]);
    expect(planReady([], 100)).toEqual([]);
  });

  test('those with most saved time for their memory come first, within the bound of memory', () => {
    expect(planReady([set, { ...set, savesMs: 100 }], 100)).toEqual([1, 0]);
    expect(planReady([set, { ...set, memoryMiB: 50 }], 149)).toEqual([0, 1]);
    expect(
      planReady(
        [
          { ...set, memoryMiB: 2048 },
          { ...set, expected: 0.2 },
        ],
        1000,
      ),
    ).toEqual([0, 1]);
    expect(planReady([set], 99)).toEqual([0]);
  });

  test('a namespace whose reports promise much takes no more than its part from others', () => {
    const greedy = { ...set, namespace: 'greedy', savesMs: 1e6, expected: 100 };
    expect(planReady([greedy, greedy, set], 400)).toEqual([2, 1, 1]);
    expect(planReady([greedy, greedy], 400)).toEqual([2, 2]);
  });

  test('only so many containers are made as the bound of memory allows', async () => {
    const harness = await PoolHarness.open({ ...options, learnedMiB: 200 }, { unloading: 'prewarmed' });
    for (let index = 0; index < 20; index++) {
      const learned = { namespace: `n${index}`, takesMore: true, savesMs: 100 + index };
      harness.pool.foresee({ ...bareSpec(kind, 128), imports, learned });
    }
    await harness.clock.runFor(refillMs);
    // A container counts 64 MiB until its memory is known.
    expect(harness.factory.live.map(({ spec }) => spec.learned?.namespace)).toEqual(['n17', 'n18', 'n19']);
    expect(harness.pool.learnedMiB()).toBe(192);
  });
});
