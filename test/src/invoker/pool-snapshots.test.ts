// Snapshots of functions in the pool: which there are, what they claim, and when they go.
import { describe, expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { ContainerFactory, FunctionSnapshot } from '@gpuwhisk/invoker/containers/container-factory';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import type { SnapshotWish } from '@gpuwhisk/invoker/pool/snapshots';
import { PoolHarness, kind } from './pool-harness.js';

const memoryMiB = 128;
const snapshotMiB = 40;
const initOf = (name: string) => ({ name, main: 'main', binary: false, env: {} });

/** A pool whose factory makes snapshots; `failing`: why its copies fail. */
async function open(options: Partial<PoolOptions> = {}, failing?: string) {
  const made: string[] = [];
  const removed: string[] = [];
  const copies: string[] = [];
  const current = new Map<string, string>();
  const withSnapshots = (factory: ContainerFactory): ContainerFactory => ({
    ...factory,
    snapshot({ spec, init }): Promise<FunctionSnapshot> {
      made.push(init.name);
      if (init.name === 'unfit') return Promise.reject(new Error('It has 2 threads.'));
      return Promise.resolve({
        memoryMiB: snapshotMiB,
        copy(ahead) {
          copies.push(init.name);
          return failing === undefined ? factory.create(spec, ahead) : Promise.reject(new Error(failing));
        },
        remove() {
          removed.push(init.name);
          return Promise.resolve();
        },
      });
    },
  });
  const harness = await PoolHarness.open(options, {}, withSnapshots);
  const load = async (key: string, revision = '1', namespace = 'ns', forMs = 251): Promise<void> => {
    current.set(key, current.get(key) ?? revision);
    const wish: SnapshotWish = {
      ...{ key: `${key} ${revision}`, of: key, revision, action: `/ns/${key}`, namespace, loadMs: 500 },
      spec: bareSpec(kind, memoryMiB),
      init: () => Promise.resolve(initOf(key)),
      isCurrent: () => Promise.resolve(current.get(key) === revision),
    };
    harness.pool.loaded(key, revision, wish);
    if (forMs > 0) await harness.clock.runFor(forMs);
  };
  const figures = () => harness.pool.snapshots.figures();
  return { harness, load, made, removed, copies, current, figures };
}

describe('the snapshot of a function', () => {
  test('serves new containers of its own jobs only, before anything that is ready', async () => {
    const { harness, load, copies, figures } = await open({
      stemCells: [{ spec: bareSpec(kind, memoryMiB), initialCount: 1 }],
    });
    await load('a');
    await harness.clock.runUntil(harness.pool.prewarm());
    const both = await harness.runAll([
      ['a 1', { ms: 1000 }],
      ['a 1', { ms: 1000 }],
      ['b 1', { ms: 1 }],
    ]);
    expect(both.map(({ start }) => start)).toEqual(['cold', 'cold', 'prewarmed']);
    expect(copies).toEqual(['a', 'a']);
    expect(figures()).toMatchObject({ savedSeconds: 1, standing: 1 });
  });

  test('claims its memory, and goes before any idle container when a container lacks memory', async () => {
    const { harness, load, removed } = await open({ memoryMiB: 3 * memoryMiB });
    await harness.run('idle');
    await load('a');
    expect(harness.pool.snapshot().claimedMiB).toBe(memoryMiB + snapshotMiB);
    expect((await harness.runAll([['b'], ['c']])).map(({ failure }) => failure)).toEqual([undefined, undefined]);
    expect(removed).toEqual(['a']);
    expect((await harness.run('idle')).start).toBe('warm');
    // There is no memory to make another one.
    await load('d');
    expect(harness.pool.snapshots.list().at(-1)).toMatchObject({
      action: '/ns/d',
      unfit: expect.stringMatching(/memory/),
    });
  });

  test('goes when others need its part of the bound, the longest unused first', async () => {
    const { harness, load, removed } = await open({ memoryMiB: 4096, learnedMiB: 2 * snapshotMiB });
    await load('a');
    await load('b');
    await harness.run('a 1');
    await load('c');
    expect(removed).toEqual(['b']);
    expect(harness.pool.snapshots.standingMiB).toBe(2 * snapshotMiB);
  });

  test('is made once no function was loaded for a while, or after 5 s', async () => {
    const { harness, load, made } = await open();
    for (let at = 0; at < 20; at += 1) await load('a', '1', 'ns', 200);
    expect(made).toEqual([]);
    expect(harness.pool.snapshot().claimedMiB).toBe(0);
    await load('a', '1', 'ns', 250);
    expect(made).toEqual(['a']);
    for (let at = 0; at < 26; at += 1) await load('b', '1', 'ns', 200);
    expect(made).toEqual(['a', 'b']);
  });

  test('is made one at a time, for the namespaces in turn', async () => {
    const { harness, load, made } = await open({ memoryMiB: 4096 });
    const all = ['a1', 'a2', 'a3', 'b1', 'b2'].map((key) => load(key, '1', key.slice(0, 1), 0));
    await harness.clock.runFor(1000);
    await Promise.all(all);
    expect(made).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
    expect(harness.pool.snapshots.figures()).toMatchObject({ standing: 5 });
  });

  test('goes with its revision: after an update, and after a deletion', async () => {
    const { harness, load, removed, current, copies } = await open();
    await load('a');
    current.set('a', '2');
    await load('a', '2');
    expect(removed).toEqual(['a']);
    await harness.run('a 1');
    expect(copies).toEqual([]);
    current.delete('a');
    await harness.clock.runFor(10_001);
    expect(removed).toEqual(['a', 'a']);
    expect(harness.pool.snapshot().claimedMiB).toBe(memoryMiB);
  });

  test('is not made again for an hour where the function is unfit, or three copies have failed', async () => {
    const { harness, load, made, figures } = await open({}, 'The file /lib/x has changed.');
    await load('unfit');
    await load('unfit');
    expect(made).toEqual(['unfit']);
    expect(harness.pool.snapshots.list()).toMatchObject([{ action: '/ns/unfit', unfit: 'It has 2 threads.' }]);
    expect((await harness.run('unfit 1')).failure).toBeUndefined();
    for (let round = 0; round < 5; round += 1) {
      await load('a');
      expect((await harness.run(`a 1`, { disposition: 'discard' })).start).toBe('cold');
    }
    expect(made).toEqual(['unfit', 'a', 'a', 'a']);
    expect(Object.fromEntries(figures().starts)).toEqual({ restored: 0, none: 0, off: 3, failed: 3 });
    await harness.clock.runFor(3_600_000);
    await load('a');
    expect(made.at(-1)).toBe('a');
    expect(made).toHaveLength(5);
    await harness.pool.close();
    expect(harness.pool.snapshot().claimedMiB).toBe(0);
  });
});
