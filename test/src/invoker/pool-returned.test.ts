// Containers that can unload serve action after action of their namespace.
import { describe, expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { GuestAnswer, SimulatedFactoryOptions } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import { initMs, kind, PoolHarness, startMs } from './pool-harness.js';
import type { JobOptions } from './pool-harness.js';

const graceMs = 1000;
const idleMs = 5000;
const ours: JobOptions = { namespace: 'ours' };

/** A pool whose containers can all unload, by default at once and without failure. */
function open(
  options: Partial<PoolOptions> = {},
  unload?: (container: string) => GuestAnswer,
  factory: Partial<SimulatedFactoryOptions> = {},
): Promise<PoolHarness> {
  return PoolHarness.open(
    { pauseGraceMs: graceMs, idleContainerMs: idleMs, ...options },
    { unloading: 'all', ...factory },
    undefined,
    unload && { unload },
  );
}

describe('a container whose action was idle for long', () => {
  test('is unloaded and serves another action of the namespace', async () => {
    const harness = await open();
    const first = await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 1, claimedMiB: 128 });
    expect(harness.pool.prewarmed().map(({ id }) => id)).toEqual([first.container]);
    const beforeMs = harness.clock.monotonicMs();
    const second = await harness.run('b', ours);
    expect(second).toMatchObject({ start: 'injected', container: first.container, endedMs: beforeMs + initMs + 1 });
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, prewarmed: 0, claimedMiB: 128 });
  });

  test('never serves an action of another namespace', async () => {
    const harness = await open();
    const first = await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    const other = await harness.run('o', { namespace: 'others' });
    expect(other.start).toBe('cold');
    expect(other.container).not.toBe(first.container);
  });

  test.each([
    ['another owner', 'vendor'],
    ['another owner, for execution only', 'vendor execute-only'],
  ])('never serves code of %s', async (_, codeOf) => {
    const harness = await open();
    const first = await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    const bound = await harness.run('bound', { ...ours, codeOf });
    expect(bound.start).toBe('cold');
    expect(bound.container).not.toBe(first.container);
    // Each container serves jobs of its own provenance.
    expect((await harness.run('b', ours)).container).toBe(first.container);
    await harness.clock.runFor(idleMs + 2000);
    expect((await harness.run('bound2', { ...ours, codeOf })).container).toBe(bound.container);
  });

  test('of one owner never serves what is for execution only', async () => {
    const harness = await open();
    const readable = await harness.run('a', { ...ours, codeOf: 'vendor' });
    await harness.clock.runFor(idleMs + 2000);
    const closed = await harness.run('b', { ...ours, codeOf: 'vendor execute-only' });
    expect(closed).toMatchObject({ start: 'cold' });
    expect(closed.container).not.toBe(readable.container);
  });

  test('is destroyed if nobody wants it for as long again', async () => {
    const harness = await open();
    await harness.run('a', ours);
    await harness.clock.runFor(2 * idleMs + 3000);
    expect(harness.factory.live).toHaveLength(0);
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, prewarmed: 0 });
  });

  test('is destroyed at once if it cannot unload', async () => {
    const harness = await open({}, undefined, { unloading: 'none' });
    await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    expect(harness.factory.live).toHaveLength(0);
  });

  test('is destroyed if it dies while it waits', async () => {
    const harness = await open();
    const first = await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    harness.factory.crash(first.container ?? '');
    await harness.clock.runFor(1);
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, prewarmed: 0 });
    expect((await harness.run('b', ours)).start).toBe('cold');
  });

  test.each<[string, GuestAnswer]>([
    ['leaves something behind', { then: { do: 'error', error: 'a thread' } }],
    ['does not answer', { then: { do: 'hang' } }],
    ['ends', { then: { do: 'exit' } }],
  ])('is destroyed if it %s', async (_, answer) => {
    const harness = await open({}, () => answer);
    await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 1000 + 5000);
    expect(harness.factory.live).toHaveLength(0);
    expect(harness.pool.snapshot()).toMatchObject({ claimedMiB: 0, prewarmed: 0 });
  });

  test('of these there are at most 8 for a namespace and 32 in all', async () => {
    const harness = await open({ memoryMiB: 128 * 100 });
    const namespaces = ['n0', 'n1', 'n2', 'n3', 'n4'];
    const jobs = namespaces.flatMap((namespace) =>
      Array.from({ length: 10 }, (_, index): [string, JobOptions] => [`${namespace} ${index}`, { namespace }]),
    );
    await harness.runAll(jobs);
    await harness.clock.runFor(idleMs + 1000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 32, claimedMiB: 32 * 128 });
  });
});

describe('which container a start takes', () => {
  const numpy: JobOptions = { ...ours, imports: ['numpy'] };

  test('a returned one with just what is wanted, else a stem cell, else a returned one with less', async () => {
    const harness = await open({ stemCells: [{ spec: bareSpec(kind, 128), initialCount: 1 }] });
    await harness.clock.runUntil(harness.pool.prewarm());
    const stemCell = harness.pool.prewarmed()[0]?.id;
    const plain = await harness.run('a', ours);
    expect(plain).toMatchObject({ start: 'injected', container: stemCell });
    await harness.clock.runFor(idleMs + 2000);
    expect(harness.pool.snapshot().prewarmed).toBe(2);
    // Neither container has all wanted modules; both have a subset of them, the empty one.
    const withModules = await harness.run('b', numpy);
    expect(withModules.container).not.toBe(plain.container);
    const exact = await harness.run('c', ours);
    expect(exact.container).toBe(plain.container);
  });

  test('a returned one with less where there is no stem cell', async () => {
    const harness = await open();
    const plain = await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    expect(await harness.run('b', numpy)).toMatchObject({ start: 'injected', container: plain.container });
  });
});

describe('a container that idles with another action', () => {
  test('is thawed, unloaded and taken after the grace, where no stem cell is at hand', async () => {
    const harness = await open();
    const first = await harness.run('a', ours);
    await harness.clock.runFor(graceMs + 2000);
    expect(await harness.run('b', ours)).toMatchObject({ start: 'injected', container: first.container });
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, claimedMiB: 128 });
    expect((await harness.run('a', ours)).start).toBe('cold');
  });

  test('not before, where there is memory for another', async () => {
    const harness = await open();
    const first = await harness.run('a', ours);
    expect((await harness.run('b', ours)).start).toBe('cold');
    expect(await harness.run('a', ours)).toMatchObject({ start: 'warm', container: first.container });
  });

  test('before it, rather than be destroyed for the memory', async () => {
    const harness = await open({ memoryMiB: 128 });
    const first = await harness.run('a', ours);
    expect(await harness.run('b', ours)).toMatchObject({ start: 'injected', container: first.container });
  });

  test("not if it is of another namespace, had another owner's code, or is of another size", async () => {
    const harness = await open();
    await harness.run('a', ours);
    await harness.clock.runFor(graceMs + 2000);
    expect((await harness.run('bound', { ...ours, codeOf: 'vendor' })).start).toBe('cold');
    expect((await harness.run('o', { namespace: 'others' })).start).toBe('cold');
    expect((await harness.run('b', { ...ours, memoryMiB: 256 })).start).toBe('cold');
  });

  test('if it cannot be unloaded, a new one serves, hardly later than it would have', async () => {
    for (const answer of [{ then: { do: 'error', error: 'a thread' } }, { then: { do: 'hang' } }] as GuestAnswer[]) {
      const harness = await open({}, () => answer);
      const first = await harness.run('a', ours);
      await harness.clock.runFor(graceMs + 2000);
      const beforeMs = harness.clock.monotonicMs();
      const second = await harness.run('b', ours);
      expect(second.start).toBe('cold');
      expect(second.container).not.toBe(first.container);
      expect(second.endedMs - beforeMs).toBeLessThanOrEqual(2 * startMs + initMs + 1);
      await harness.clock.runFor(5000);
      expect(harness.factory.live.map(({ id }) => id)).toEqual([second.container]);
      expect(harness.pool.snapshot()).toMatchObject({ containers: 1, claimedMiB: 128 });
    }
  });

  test('that is unloaded slowly serves whoever comes next', async () => {
    const harness = await open({}, () => ({ afterMs: 1000, then: { do: 'result', value: {} } }));
    const first = await harness.run('a', ours);
    await harness.clock.runFor(graceMs + 2000);
    expect((await harness.run('b', ours)).start).toBe('cold');
    await harness.clock.runFor(1000);
    expect(await harness.run('c', ours)).toMatchObject({ start: 'injected', container: first.container });
  });
});

describe('memory that somebody needs', () => {
  test('is given up by returned containers before anybody loses a warm one', async () => {
    const harness = await open({ memoryMiB: 256 });
    await harness.run('a', ours);
    await harness.clock.runFor(idleMs + 2000);
    const warm = await harness.run('w', { namespace: 'w' });
    await harness.run('b', { namespace: 'others' });
    expect(await harness.run('w', { namespace: 'w' })).toMatchObject({ start: 'warm', container: warm.container });
    expect(harness.mostMiB).toBeLessThanOrEqual(256);
  });

  test('comes from one that keeps it busy: unloaded for an action of its namespace', async () => {
    const harness = await open({ memoryMiB: 128 });
    let stop = false;
    const greedy = async (): Promise<void> => {
      while (!stop) await harness.submit('greedy', { ...ours, ms: 50 });
    };
    const work = Promise.all([greedy(), greedy(), greedy()]);
    await harness.clock.runFor(2000);
    const modest = await harness.run('modest', { ...ours, ms: 50 });
    expect(modest.start).toBe('injected');
    stop = true;
    await harness.clock.runUntil(work);
  });
});

test('memory that code of another owner needs comes from a container that is destroyed, not unloaded', async () => {
  const harness = await open({ memoryMiB: 128 });
  const first = await harness.run('a', ours);
  const bound = await harness.run('bound', { ...ours, codeOf: 'vendor' });
  expect(bound.start).toBe('cold');
  expect(bound.container).not.toBe(first.container);
});

describe('a container whose action failed', () => {
  test('is unloaded, and serves the next start', async () => {
    const harness = await open();
    const first = await harness.run('a', { ...ours, disposition: 'recover' });
    await harness.clock.runFor(1);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 1 });
    expect(await harness.run('a', ours)).toMatchObject({ start: 'injected', container: first.container });
  });

  test('serves the job that waits for it at once', async () => {
    const harness = await open({ memoryMiB: 128 });
    const [first, second] = await harness.runAll([
      ['a', { ...ours, ms: 100, disposition: 'recover' }],
      ['a', { ...ours, ms: 100 }],
    ]);
    expect(second).toMatchObject({ start: 'injected', container: first?.container });
  });

  test('is destroyed where it cannot unload, or where that fails', async () => {
    const plain = await open({}, undefined, { unloading: 'none' });
    await plain.run('a', { ...ours, disposition: 'recover' });
    expect(plain.factory.live).toHaveLength(0);
    const failing = await open({}, () => ({ then: { do: 'error', error: 'a thread' } }));
    await failing.run('a', { ...ours, disposition: 'recover' });
    await failing.clock.runFor(1);
    expect(failing.factory.live).toHaveLength(0);
    expect(failing.pool.snapshot().claimedMiB).toBe(0);
  });

  test('ends its other runs before it is unloaded', async () => {
    const harness = await open();
    await harness.run('a', { ...ours, concurrency: 2 });
    const ended = await harness.runAll([
      ['a', { ...ours, concurrency: 2, ms: 10, disposition: 'recover' }],
      ['a', { ...ours, concurrency: 2, ms: 500 }],
    ]);
    await harness.clock.runFor(1);
    expect(new Set(ended.map(({ container }) => container)).size).toBe(1);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 1 });
  });
});

test('the pool closes while a container is being unloaded', async () => {
  const harness = await open({}, () => ({ afterMs: 3000, then: { do: 'result', value: {} } }));
  await harness.run('a', ours);
  await harness.clock.runFor(idleMs + 1500);
  expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 0, claimedMiB: 128 });
  await harness.clock.runUntil(harness.pool.close());
  await harness.clock.runFor(5000);
  expect(harness.factory.live).toHaveLength(0);
  expect(harness.pool.snapshot().claimedMiB).toBe(0);
});
