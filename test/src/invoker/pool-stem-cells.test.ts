// Containers that are started before they are needed.
import { describe, expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { containerLike } from '../simulation/delegates.js';
import { PoolHarness, initMs, kind, startMs } from './pool-harness.js';

const stemCell = { spec: bareSpec(kind, 128), initialCount: 1 };
const refillMs = 100 + startMs;

describe('stem cells', () => {
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
    const harness = await PoolHarness.open({ stemCells: [stemCell], stemCellsOnDemand: true });
    await harness.clock.runUntil(harness.pool.prewarm());
    const imports = ['numpy'];
    // The existing stem cell has a subset of the wanted modules, the empty one.
    expect((await harness.run('a', { imports })).start).toBe('prewarmed');
    await harness.clock.runFor(100 + startMs);
    expect(harness.pool.snapshot().prewarmed).toBe(2);
    expect(harness.factory.live.map(({ spec }) => spec.imports)).toContainEqual(imports);
    const [ready] = harness.factory.live.filter(({ spec }) => spec.imports.length > 0).slice(-1);
    expect(await harness.run('b', { imports })).toMatchObject({ start: 'prewarmed', container: ready?.id });
    // A stem cell with more than the wanted modules is not used.
    expect((await harness.run('c')).container).not.toBe(ready?.id);
  });

  test('learned modules are loaded ahead for their namespace only, and more than wanted where the action takes more', async () => {
    const harness = await PoolHarness.open({ stemCellsOnDemand: true }, { unloading: 'prewarmed' });
    const learned = { namespace: 'n', takesMore: false, savesMs: 100 };
    const imports = ['numpy', 'scipy'];
    harness.pool.foresee({ ...bareSpec(kind, 128), imports, learned });
    await harness.clock.runFor(refillMs);
    const [ready] = harness.factory.live;
    expect(ready?.spec).toMatchObject({ imports, learned });
    for (const [key, options] of [
      ['a', {}],
      ['b', { imports, learned: { namespace: 'other', takesMore: true, savesMs: 100 } }],
      ['c', { imports }],
      ['d', { imports: ['numpy'], learned }],
    ] as const) {
      const { container } = await harness.run(key, { ...options, namespace: 'n', disposition: 'discard' });
      expect(container).not.toBe(ready?.id);
    }
    const more = { imports: ['numpy'], learned: { namespace: 'n', takesMore: true, savesMs: 100 } };
    const found = await harness.run('e', { ...more, namespace: 'n' });
    expect(found).toMatchObject({ start: 'injected', container: ready?.id });
  });

  test('a container that an action waits for loads no learned modules', async () => {
    const harness = await PoolHarness.open();
    const { container } = await harness.run('a', {
      imports: ['numpy'],
      learned: { namespace: 'a', takesMore: true, savesMs: 100 },
    });
    expect(harness.factory.live.find(({ id }) => id === container)?.spec).toMatchObject({ imports: [] });
  });

  test('stem cells that no action has wanted for long are given up', async () => {
    const harness = await PoolHarness.open({ stemCellsOnDemand: true });
    await harness.run('a', { imports: ['numpy'], disposition: 'discard' });
    await harness.clock.runFor(100 + startMs);
    expect(harness.pool.snapshot().prewarmed).toBe(1);
    await harness.clock.runFor(1_300_000);
    expect(harness.pool.snapshot()).toMatchObject({ prewarmed: 0, claimedMiB: 0 });
  });

  test('of stem cells for modules there is a bounded number', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128 * 100, stemCellsOnDemand: true });
    for (let index = 0; index < 30; index++) {
      await harness.run(`a${index}`, { imports: [`m${index}`], disposition: 'discard' });
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

  test('one that found no memory, or gave it up, is started when there is some again', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 128, stemCells: [stemCell], idleContainerMs: 60_000 });
    await harness.clock.runUntil(harness.pool.prewarm());
    // The run ends long after its successor was to start.
    await harness.run('late', { ms: 5000, disposition: 'discard' });
    expect(harness.pool.snapshot().prewarmed).toBe(0);
    await harness.clock.runFor(1000 + startMs);
    expect(harness.pool.snapshot()).toMatchObject({ prewarmed: 1, claimedMiB: 128 });
    await harness.run('other', { memoryMiB: 64 });
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, prewarmed: 0 });
    await harness.clock.runFor(63_000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 0, prewarmed: 1 });
  });

  test('one that cannot be started is tried at growing intervals, a minute at most, until it can be', async () => {
    let [tries, works] = [0, false];
    const harness = await PoolHarness.open({ memoryMiB: 1024, stemCells: [stemCell] }, {}, (factory) => ({
      ...factory,
      prewarm: (spec) => (++tries, works ? factory.prewarm(spec) : Promise.reject(new Error('there is no such image'))),
    }));
    await harness.clock.runUntil(harness.pool.prewarm());
    const requestUntil = async (ms: number): Promise<void> => {
      while (harness.clock.monotonicMs() < ms) await harness.run('a', { disposition: 'discard' });
    };
    const startedMs = harness.clock.monotonicMs();
    await requestUntil(startedMs + 60_000);
    // After 0, 1, 3, 7, 15 and 31 s.
    expect(tries).toBe(6);
    await requestUntil(startedMs + 240_000);
    expect(tries).toBe(9);
    works = true;
    await requestUntil(startedMs + 310_000);
    expect((await harness.run('a')).start).toBe('prewarmed');
  });

  test('not one that an action waits for memory beside', async () => {
    const harness = await PoolHarness.open({ memoryMiB: 256, stemCells: [stemCell] });
    await harness.clock.runUntil(harness.pool.prewarm());
    const first = harness.submit('a', { ms: 5000, disposition: 'discard' });
    const other = harness.submit('b', { ms: 8000 });
    const large = harness.submit('large', { memoryMiB: 256 });
    await harness.clock.runUntil(first);
    await harness.clock.runFor(2000);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, prewarmed: 0, waitingJobs: 1 });
    await harness.clock.runUntil(other);
    expect((await harness.clock.runUntil(large)).start).toBe('cold');
  });

  test('an ordinary kind that started cold has one for its next start', async () => {
    const harness = await PoolHarness.open({ stemCellsOnDemand: true }, { unloading: 'prewarmed' });
    expect((await harness.run('a')).start).toBe('cold');
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot()).toMatchObject({ containers: 1, prewarmed: 1 });
    expect((await harness.run('b')).start).toBe('injected');
    await harness.clock.runFor(refillMs);
    expect((await harness.run('c')).start).toBe('injected');
    expect((await harness.run('d', { memoryMiB: 256 })).start).toBe('cold');
  });

  test('it makes room before anybody loses a warm container, and is given up when nobody wants it', async () => {
    const harness = await PoolHarness.open({ stemCellsOnDemand: true, memoryMiB: 384 }, { unloading: 'prewarmed' });
    const warm = await harness.run('a');
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot().prewarmed).toBe(1);
    expect((await harness.run('b', { memoryMiB: 256 })).start).toBe('cold');
    expect(await harness.run('a')).toMatchObject({ start: 'warm', container: warm.container });
    const idle = await PoolHarness.open({ stemCellsOnDemand: true }, { unloading: 'prewarmed' });
    await idle.run('a', { disposition: 'discard' });
    await idle.clock.runFor(refillMs);
    expect(idle.pool.snapshot().prewarmed).toBe(1);
    await idle.clock.runFor(1_300_000);
    expect(idle.pool.snapshot()).toMatchObject({ prewarmed: 0, claimedMiB: 0 });
  });

  test('there is none for it where none are wanted', async () => {
    const harness = await PoolHarness.open({ stemCellsOnDemand: false });
    await harness.run('a');
    await harness.run('b', { imports: ['numpy'] });
    await harness.clock.runFor(refillMs);
    expect(harness.pool.snapshot().prewarmed).toBe(0);
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
    // A stem cell that was taken has a successor.
    await harness.clock.runFor(startMs + initMs);
    expect(harness.pool.snapshot().containers).toBe(3);
  });

  test('give way to others until their code is loaded, those that others wait for never do', async () => {
    const ways: string[] = [];
    const harness = await PoolHarness.open({}, {}, (factory) => ({
      ...factory,
      create: async (spec, ahead) => {
        const container = await factory.create(spec);
        ways.push(`created ${ahead ? 'ahead' : 'now'}`);
        const giveWay = (gives: boolean): Promise<void> => {
          ways.push(gives ? 'gives way' : 'does not');
          return Promise.resolve();
        };
        return containerLike(container, {
          giveWay,
          init: (request, limits) => {
            ways.push('loads');
            return container.init(request, limits);
          },
        });
      },
    }));
    await harness.run('a', { readiesAhead: true });
    await harness.clock.runFor(startMs + initMs);
    expect(ways).toEqual(['created now', 'loads', 'created ahead', 'gives way', 'loads', 'does not']);
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
