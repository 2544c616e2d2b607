import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { makePolicy, type PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import { faashareBaselines } from './register.js';

/** The price of the share alone, inversely proportional below what is used. */
const predictor: SlowdownPredictor = {
  slowdown: ({ features, share }) => Math.max(1, features.smUtil / share),
};
const needs: PolicyNeeds = { predictorOf: () => predictor, random: seededRandom(1), admission: 'best-effort' };

function task(id: string, more: Partial<Task> = {}): Task {
  return {
    id,
    function: `/guest/${id}`,
    version: '0.0.1',
    namespace: 'guest',
    batch: 1,
    gpus: 1,
    memoryMiB: 1000,
    soloMs: 100,
    features: { smUtil: 0.25, dramUtil: 0.2, l2Util: 0.1 },
    arrivedAt: 0,
    class: 'inference',
    ...more,
  };
}

function gpu(id: string, more: Partial<ReportedPlace> = {}): ReportedPlace {
  return { id, node: 'node0', type: 'v100', mode: 'mps', memoryMiB: 16_000, running: [], ...more };
}

function startsOf(
  name: string,
  waiting: Task[],
  gpus: ReportedPlace[],
  at = 0,
): { task: string; gpu: string; share: number }[] {
  return makePolicy(name, needs)
    .decide(viewOf({ at, gpus, waiting }), { kind: 'timer' })
    .starts.map(({ task: id, gpu: where, share }) => ({ task: id, gpu: where, share }));
}

const saturating = { features: { smUtil: 1, dramUtil: 0.2, l2Util: 0.1 } };

describe.each(faashareBaselines)('%s', (name) => {
  test('never gives away more memory or more than a whole GPU to tasks that share it', () => {
    const waiting = Array.from({ length: 40 }, (_, i) =>
      task(`t${i}`, { arrivedAt: -i, memoryMiB: 500 * (1 + (i % 7)), ...(i % 2 && { sloMs: 400 + i }) }),
    );
    const starts = startsOf(name, waiting, [gpu('a'), gpu('b', { memoryMiB: 4000 })]);
    expect(new Set(starts.map((start) => start.task)).size).toBe(starts.length);
    expect(starts.length).toBeGreaterThanOrEqual(2);
    for (const [id, memoryMiB] of [
      ['a', 16_000],
      ['b', 4000],
    ] as const) {
      const there = starts
        .filter((start) => start.gpu === id)
        .map((start) => waiting.find((one) => one.id === start.task));
      expect(there.reduce((sum, one) => sum + (one?.memoryMiB ?? NaN), 0)).toBeLessThanOrEqual(memoryMiB);
    }
    for (const { share } of starts) expect(share > 0 && share <= 1).toBe(true);
  });

  test('what is known of a task may be nothing', () => {
    const unknown = task('unknown', { memoryMiB: 0, sloMs: 1000 });
    delete unknown.soloMs;
    delete unknown.features;
    expect(startsOf(name, [unknown], [gpu('a')])).toHaveLength(1);
  });

  test('without GPUs all wait, with the reason; a task that is late goes on as best effort', () => {
    const policy = makePolicy(name, needs);
    const waiting = [task('late', { sloMs: 50 }), task('early', { sloMs: 5000 })];
    const none = policy.decide(viewOf({ at: 100, waiting }), { kind: 'timer' });
    expect([...none.order].sort()).toEqual(['early', 'late']);
    expect(none.bestEffort).toEqual(['late']);
    const full = [gpu('a', { memoryMiB: 100 })];
    const refused = makePolicy(name, { ...needs, admission: 'refuse' }).decide(
      viewOf({ at: 100, gpus: full, waiting }),
      { kind: 'timer' },
    );
    expect(refused.refused.map((one) => one.task)).toEqual(['late']);
    expect(refused.rejected.map(({ task: id, reason }) => [id, reason])).toEqual([['early', 'too small']]);
  });

  test('several GPUs are had together or not at all', () => {
    const gang = task('gang', { gpus: 2 });
    const alike = [gpu('a'), gpu('b')];
    const [start] = makePolicy(name, needs).decide(viewOf({ gpus: alike, waiting: [gang] }), { kind: 'timer' }).starts;
    expect([start?.gpu, ...(start?.alsoOn ?? [])].sort()).toEqual(['a', 'b']);
    expect(startsOf(name, [gang], [gpu('a'), gpu('b', { node: 'node1' })])).toEqual([]);
  });
});

test.each([
  ['exclusive', ['long', 'small']],
  ['fcfs', ['long', 'small', 'short']],
  ['time-priority', ['short', 'small', 'long']],
  ['memory-priority', ['small', 'short', 'long']],
  ['longest-first', ['long', 'small', 'short']],
  ['shortest-remaining', ['short', 'small', 'long']],
  ['uncapped', ['short', 'small', 'long']],
])('%s serves %j', (name, expected) => {
  const waiting = [
    task('short', { arrivedAt: 3, soloMs: 10, memoryMiB: 3000 }),
    task('long', { arrivedAt: 1, soloMs: 900, memoryMiB: 4000 }),
    task('small', { arrivedAt: 2, soloMs: 100, memoryMiB: 200 }),
  ];
  expect(startsOf(name, waiting, [gpu('a'), gpu('b')], 5).map((start) => start.task)).toEqual(expected);
});

test('the remaining time includes the start', () => {
  const waiting = [task('cold', { soloMs: 10, startMs: 1800 }), task('warm', { soloMs: 100, startMs: 0 })];
  expect(startsOf('shortest-remaining', waiting, [gpu('a')]).map((start) => start.task)).toEqual(['warm', 'cold']);
  expect(startsOf('time-priority', waiting, [gpu('a')]).map((start) => start.task)).toEqual(['cold', 'warm']);
});

test('without caps tasks get the whole GPU while their fills sum to one', () => {
  const fills = (smUtil: number) => ({ features: { smUtil, dramUtil: 0.2, l2Util: 0.1 } });
  const waiting = [0.5, 0.3, 0.5].map((fill, i) => task(`t${i}`, { soloMs: i + 1, ...fills(fill) }));
  const starts = startsOf('uncapped', waiting, [gpu('a')]);
  expect(starts.map(({ task: id, share }) => [id, share])).toEqual([
    ['t0', 1],
    ['t1', 1],
  ]);
});

test('two on a GPU, on the GPU with the fewest', () => {
  const waiting = [1, 2, 3, 4, 5].map((i) => task(`t${i}`, { arrivedAt: i }));
  const starts = startsOf('mps-equal', waiting, [gpu('a'), gpu('b')], 9);
  expect(starts.map((start) => `${start.task} ${start.gpu} ${start.share}`)).toEqual([
    't1 a 1',
    't2 b 1',
    't3 a 1',
    't4 b 1',
  ]);
});

test('ElasticFlow serves who can meet a deadline, then the shortest', () => {
  const waiting = [
    task('hopeless', { sloMs: 50 }),
    task('later', { sloMs: 500 }),
    task('sooner', { sloMs: 300 }),
    task('short', { soloMs: 5 }),
  ];
  const gpus = ['a', 'b', 'c'].map((id) => gpu(id));
  expect(startsOf('elasticflow', waiting, gpus).map((start) => start.task)).toEqual(['sooner', 'later', 'short']);
});

test('TGS puts beside a production job what that leaves, and nothing beside one that leaves nothing', () => {
  const production = task('production', { sloMs: 1000 });
  const waiting = [production, task('opportunistic'), task('third')];
  expect(startsOf('tgs', waiting, [gpu('a')])).toEqual([
    { task: 'production', gpu: 'a', share: 1 },
    { task: 'opportunistic', gpu: 'a', share: 0.7 },
  ]);
  expect(startsOf('tgs', [task('full', { sloMs: 1000, ...saturating }), task('none')], [gpu('a')])).toHaveLength(1);
  const running = [{ task: task('acting'), share: 1, startedAt: 0 }];
  expect(startsOf('tgs', [production], [gpu('a', { running })])).toEqual([{ task: 'production', gpu: 'a', share: 1 }]);
});

test('FluidFaaS takes the smallest slice that meets the SLO, else the greatest fragment that does', () => {
  const running = (share: number): ReportedPlace['running'] => [{ task: task('other'), share, startedAt: 0 }];
  const strict = task('strict', { sloMs: 220, ...saturating });
  const gpus = [gpu('a'), gpu('b', { running: running(2 / 7) })];
  expect(startsOf('fluidfaas', [strict], gpus)).toEqual([{ task: 'strict', gpu: 'b', share: 4 / 7 }]);
  expect(startsOf('fluidfaas', [strict], [gpu('b', { running: running(0.5) })])).toEqual([]);
  const loose = task('loose', { sloMs: 250, ...saturating });
  expect(startsOf('fluidfaas', [loose], [gpu('b', { running: running(0.5) })])).toEqual([
    { task: 'loose', gpu: 'b', share: 3 / 7 },
  ]);
});

test('FaST-GShare takes the share with most throughput for it, where that leaves the least', () => {
  const running = [{ task: task('other'), share: 0.5, startedAt: 0 }];
  const gpus = [gpu('a'), gpu('b', { running })];
  const half = task('half', { features: { smUtil: 0.5, dramUtil: 0, l2Util: 0 } });
  expect(startsOf('fast-gshare', [half], gpus)).toEqual([{ task: 'half', gpu: 'b', share: 0.5 }]);
  expect(startsOf('fast-gshare', [{ ...half, id: 'strict', sloMs: 130 }], gpus)).toEqual([
    { task: 'strict', gpu: 'b', share: 0.5 },
  ]);
});
