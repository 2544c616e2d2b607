// What decisions keep of the runs that they placed.
import { beforeEach, expect, test } from '@jest/globals';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import { GpuCluster } from './gpu-cluster.js';

let cluster: GpuCluster;
beforeEach(async () => {
  cluster = await GpuCluster.start({ policy: 'least-loaded' });
  await cluster.tell();
});

const decisionsOf = (name: string): DecisionRecord[] =>
  cluster.scheduler.decisions().filter(({ action }) => action === `/alice/${name}`);
const small = { memoryMiB: 10_000 };

/** Runs an action alone on its GPU for so long, ms, in a warm instance. */
async function warm(name: string, ms: number): Promise<void> {
  const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 10_000 } as const;
  await cluster.tell({
    residents: [
      {
        ...{ container: `of ${name}`, action: `/alice/${name}`, device: 'GPU-0', memoryMiB: 10_000, share },
        ...{ namespace: 'alice', isolation: 'namespace', activations: [] },
      },
    ],
  });
  await cluster.accept(name, small);
  await cluster.clock.runFor(ms);
  await cluster.finish(name);
}

test('one that waits knows how many were ahead', async () => {
  for (const name of ['runs', 'first', 'second', 'third']) await cluster.accept(name, { sloMs: 60_000 });
  expect(['first', 'second', 'third'].map((name) => decisionsOf(name)[0]?.ahead)).toEqual([0, 1, 2]);
  expect(decisionsOf('third')[0]?.sloMs).toBe(60_000);
  await cluster.finish('runs');
  await cluster.tell();
  expect(decisionsOf('first')[0]).toMatchObject({
    reason: expect.stringMatching(/^placed/),
    waitedFor: expect.any(String),
  });
  expect(decisionsOf('runs')[0]).not.toHaveProperty('waitedFor');
});

test('functions that ran beside a run are kept with their part of its time', async () => {
  await cluster.accept('a', small);
  await cluster.clock.runFor(100);
  await cluster.accept('b', small);
  await cluster.clock.runFor(100);
  await cluster.finish('b');
  await cluster.finish('a');
  const [[a], [b]] = [decisionsOf('a'), decisionsOf('b')];
  expect(a?.run?.beside).toEqual([{ action: '/alice/b', namespace: 'alice', part: expect.closeTo(0.5, 1) }]);
  expect(b?.run?.beside).toEqual([{ action: '/alice/a', namespace: 'alice', part: expect.closeTo(1, 1) }]);
  // Neither was measured alone.
  expect([a?.run?.slowdown, b?.run?.slowdown]).toEqual([undefined, undefined]);
});

test('a run without neighbours that was slower than before has a slowdown and no neighbour', async () => {
  // The first runs of a key do not count.
  for (let run = 0; run < 4; run += 1) await warm('f', 100);
  await warm('f', 800);
  const [last] = decisionsOf('f');
  expect(last?.run).toEqual({ aloneMs: 100, slowdown: 8, beside: [] });
});

test('what was seen of a run outlasts a restart once a later decision is stored', async () => {
  await warm('f', 100);
  const before = decisionsOf('f');
  expect(before[0]?.run).toBeDefined();
  await cluster.tell();
  await cluster.accept('later', small);
  await cluster.clock.runFor(10_000);
  await cluster.crash();
  expect(decisionsOf('f')).toEqual(before);
});
