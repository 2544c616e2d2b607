// Measurement of pairs of functions on idle GPUs, on a simulated clock: their choice, its budget, arriving work, changed functions.
import type { Config } from '@gpuwhisk/common/config';
import { beforeEach, expect, test } from '@jest/globals';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { chosenPairs } from '@gpuwhisk/controller/gpu/search/pair-measurements';
import type { QuotaSearchesParts } from '@gpuwhisk/controller/gpu/search/quota-searches';
import { GpuCluster, actionNamed, identity } from './gpu-cluster.js';
import { SimulatedNode } from './simulated-node.js';

const search = {
  ...{ enabled: true, idleMs: 5000, minAsked: 3, maxSampleMs: 5000 },
  ...{ pairPart: 0.2, pairSecondsPerHour: 360 },
};
const names = ['a', 'b', 'c'];
const gpu = { memoryMiB: 2000, features: { smUtil: 0.3 } };
/** Each neighbour costs a fifth, and has an odd function run in a third of the time. */
const tookMs = (name: string, _: number, beside: number): number =>
  name.startsWith('odd') && beside > 0 ? 60 : 200 + 40 * beside;

let cluster: GpuCluster;
let node: SimulatedNode;
let problems: Record<string, string>;
const source: QuotaSearchesParts['source'] = {
  of: (job) => {
    const name = job.function.split('/').at(-1) ?? '';
    const action = actionNamed(name, gpu);
    return Promise.resolve(problems[name] ?? { job, identity, action, payload: {}, memoryMiB: gpu.memoryMiB });
  },
};

async function start(options: Partial<typeof search> = {}, policy: Config['gpu']['policy'] = 'smore'): Promise<void> {
  cluster = await GpuCluster.start({ policy, search: { ...search, ...options } }, 1000, source);
  node = new SimulatedNode(cluster, tookMs);
  await node.tell();
}
beforeEach(() => {
  problems = {};
});

/** Advances the clock by `ms`; the node's agent writes its row twice a second. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    await cluster.clock.runFor(Math.min(500, left));
    await node.tell();
  }
}
async function call(...called: string[]): Promise<void> {
  for (const name of called) await cluster.accept(name, gpu);
  await pass(2500);
}
const samples = (): typeof node.runs => node.runs.filter(({ isSample }) => isSample);
const state = () => new PerformanceViews(cluster.performanceData).degradations();

test.each<[string, Config['gpu']['policy']]>([
  ['policy smore', 'smore'],
  ['its rule for places alone', { base: 'exclusive', share: 'filling', place: 'smore' }],
])(
  'functions that allow it are measured alone and together once, each pair in both directions: %s',
  async (_, policy) => {
    await start({}, policy);
    problems = { c: 'the action has no sample' };
    await call(...names);
    await pass(60_000);
    expect(state()).toMatchObject({
      models: [{ victim: 'function', neighbour: 'function', pairs: 2, measurements: 2, predictedBy: 'measuring' }],
      measurements: {
        ...{ functions: 2, chosen: 1, measured: 1, budgetS: 360 },
        problems: [{ function: '/alice/c', problem: 'the action has no sample' }],
      },
    });
    expect(new Set(samples().map(({ name }) => name))).toEqual(new Set(['a', 'b']));
    const key = { gpuType: 'a100-40', mode: 'mps', victim: 'function', neighbour: 'function' } as const;
    const side = (name: string) => ({ name: `/alice/${name}`, version: '0.0.1', share: 0.3 });
    expect(cluster.performanceData.pairs.has(key, side('a'), side('b'))).toBe(true);
    const count = samples().length;
    await pass(60_000);
    expect(samples()).toHaveLength(count);
    // A new function adds its pairs.
    problems = {};
    await call('c');
    await pass(90_000);
    expect(state().measurements).toMatchObject({ functions: 3, chosen: 3, measured: 3 });
    expect(state().models).toMatchObject([{ pairs: 6 }]);
  },
);

test('warm runs tell the times of functions alone, and the degradations of those that were beside one neighbour', async () => {
  problems = { a: 'the action has no sample', b: 'the action has no sample' };
  await start();
  for (let count = 0; count < 3; count += 1) {
    await call('a');
    await call('b');
  }
  expect(new PerformanceViews(cluster.performanceData).functions()).toMatchObject([
    { batches: [{ soloMs: expect.closeTo(200, -1), measured: true }] },
    { batches: [{ soloMs: expect.closeTo(200, -1), measured: true }] },
  ]);
  expect(state().models).toEqual([]);
  await call('a', 'b');
  expect(state().models).toMatchObject([{ victim: 'function', neighbour: 'function', pairs: expect.any(Number) }]);
  expect(samples()).toEqual([]);
});

test('arriving work has the GPU at once, and the measurement goes on when it idles again', async () => {
  await start();
  await call('a', 'b', 'c');
  for (let count = 0; samples().length < 12; count += 1) {
    expect(count).toBeLessThan(200);
    await pass(500);
  }
  await cluster.accept('a', gpu);
  const cameMs = cluster.clock.monotonicMs();
  await pass(search.idleMs - 500);
  expect(samples().filter(({ startMs }) => startMs > cameMs)).toEqual([]);
  expect(cluster.scheduler.waiting).toBe(0);
  await pass(60_000);
  expect(state().measurements).toMatchObject({ chosen: 3, measured: 3 });
});

test('a function that is deleted while it is measured ends the measurement', async () => {
  await start();
  await call('a', 'b');
  for (let count = 0; samples().length === 0; count += 1) {
    expect(count).toBeLessThan(100);
    await pass(500);
  }
  problems = { a: 'the action does not exist', b: 'the action does not exist' };
  await pass(5000);
  const count = samples().length;
  await pass(120_000);
  expect(samples()).toHaveLength(count);
  expect(state().measurements).toMatchObject({ functions: 0, chosen: 0 });
});

test.each([
  ['whose samples take longer than they may', { maxSampleMs: 150 }, ['a', 'b']],
  ['that seems to run faster than alone', {}, ['odd1', 'odd2']],
])('a pair %s is left alone for a while', async (_, options, called) => {
  await start(options);
  await call(...called);
  await pass(60_000);
  expect(state().measurements).toMatchObject({ chosen: 1, measured: 0 });
  const count = samples().length;
  expect(count).toBeGreaterThan(0);
  await pass(60_000);
  expect(samples()).toHaveLength(count);
  // Again after ten minutes, three times at most.
  for (let tries = 0; tries < 4; tries += 1) {
    await cluster.clock.runFor(600_000);
    await pass(30_000);
  }
  const most = samples().length;
  await cluster.clock.runFor(600_000);
  await pass(30_000);
  expect(samples()).toHaveLength(most);
});

test.each<[string, Partial<typeof search>, string]>([
  ['no time for it', { pairSecondsPerHour: 0 }, 'smore'],
  ['no part of the pairs', { pairPart: 0 }, 'smore'],
  ['a policy that asks for no degradations', {}, 'least-loaded'],
])('nothing is measured with %s', async (_, options, policy) => {
  await start(options, policy);
  await call('a', 'b');
  await pass(60_000);
  expect([samples(), state().models]).toEqual([[], []]);
});

test('a measurement that has taken the time of the hour is the last one in it', async () => {
  await start({ pairSecondsPerHour: 1 });
  await call('a', 'b', 'c');
  await pass(120_000);
  expect(state().measurements).toMatchObject({ chosen: 3, measured: 1 });
  expect(state().measurements!.spentS).toBeGreaterThan(1);
  await cluster.clock.runFor(3_500_000);
  await pass(120_000);
  expect(state().measurements).toMatchObject({ measured: 2 });
});

test('a fifth of the pairs is chosen, as many as a model takes at least, and new functions change none of the others', () => {
  const functions = (count: number) =>
    Array.from({ length: count }, (_, at) => {
      return { known: { function: `/a/f${at}`, version: '1', batch: 1, memoryMiB: 1 }, memoryMiB: 1 };
    });
  const names = (count: number, part = 0.2): string[] =>
    chosenPairs(functions(count), 'a100-40/mps', part).map(({ pair }) => pair.map((one) => one.function).join(' '));
  expect(names(3)).toHaveLength(3);
  expect(names(6)).toHaveLength(13);
  expect(names(30)).toHaveLength(87);
  // The number of pairs that are kept bounds them.
  expect(names(100)).toHaveLength(125);
  expect(names(40)).toEqual(names(40));
  const [few, many] = [names(14, 1), names(15, 1)];
  expect(many.filter((name) => few.includes(name))).toEqual(few);
  expect(names(40, 0)).toEqual([]);
});
