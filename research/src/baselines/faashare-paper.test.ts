// FaaShare as published: its forest, and the shares of the table.
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import { capacityModel, faashareFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import { dividedSms, gpuOf, inventedSamples, profiledTask, runningTask, taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { faashareForest } from './faashare-forest.js';
import { leastRuns, PaperForests, paperForest } from './faashare-paper.js';
import './register.js';

const gpu = { id: 'g', gpuType: 't', mode: 'mps' } as const;
const timer = { kind: 'timer' } as const;

/** Invented runs of tasks whose neighbours were there all the time. */
function runsOf(count: number): ObservedRun[] {
  return inventedSamples(count, 3).map(({ one, others, slowdown }, at) => ({
    task: { ...taskOf(`t${at}`), soloMs: 100, features: one.features },
    gpu,
    share: one.share,
    ranMs: 100 * slowdown,
    beside: others.map(({ features, share }, n) => ({
      task: { ...taskOf(`o${at}.${n}`), function: `/a/o${at}.${n}`, features },
      share,
      part: 1,
    })),
  }));
}

test('predicts by a forest of 100 trees of depth 12 that minimises absolute error', () => {
  expect(faashareForest).toMatchObject({ trees: 100, maxDepth: 12, bootstrap: true });
  const samples = inventedSamples(60, 5);
  const rows = samples.map(({ one, others }) => faashareFeatures(one, others));
  const slowdowns = samples.map(({ slowdown }) => slowdown);
  const forest = trainForest(rows, slowdowns, { ...faashareForest, seed: samples.length });
  const predictor = paperForest(samples);
  for (const { one, others } of inventedSamples(20, 6)) {
    expect(predictor.slowdown(one, others)).toBe(Math.max(1, predictForest(forest, faashareFeatures(one, others))));
  }
});

test('learns its forest from runs, per kind of GPU, and goes by the given predictor before', () => {
  const forests = new PaperForests(() => capacityModel);
  const runs = runsOf(leastRuns);
  for (const run of runs.slice(1)) forests.observe(run);
  expect(forests.predictorOf(gpu)).toBe(capacityModel);
  forests.observe(runs[0]!);
  const learned = forests.predictorOf(gpu);
  expect(learned).not.toBe(capacityModel);
  expect(forests.predictorOf({ ...gpu, mode: 'timeslice' })).toBe(capacityModel);
  const errors = (of: typeof learned): number =>
    inventedSamples(40, 7).reduce((sum, { one, others, slowdown }) => {
      return sum + Math.abs(of.slowdown(one, others) - slowdown);
    }, 0);
  // On unseen runs under the same law it errs less than a model that says that nothing is ever slower.
  expect(errors(learned)).toBeLessThan(errors({ slowdown: () => 1 }));
  const restored = new PaperForests(() => capacityModel);
  restored.restore(JSON.parse(JSON.stringify(forests.saved())));
  const [{ one, others }] = inventedSamples(1, 8) as [ReturnType<typeof inventedSamples>[number]];
  expect(restored.predictorOf(gpu).slowdown(one, others)).toBe(learned.slowdown(one, others));
});

test('runs without a time alone, without figures, or on several GPUs teach nothing', () => {
  const forests = new PaperForests(() => capacityModel);
  const bad = runsOf(3 * leastRuns).map((run, at): ObservedRun => {
    const task = { ...run.task };
    if (at % 3 === 0) delete task.soloMs;
    if (at % 3 === 1) delete task.features;
    return { ...run, task: at % 3 === 2 ? { ...task, gpus: 2 } : task };
  });
  for (const run of bad) forests.observe(run);
  expect([forests.predictorOf(gpu), forests.saved()]).toEqual([capacityModel, []]);
});

test('what starts on a GPU gets the shares of the table, beside residents and fixed shares that stay', () => {
  const asked: unknown[] = [];
  const quotas: Quotas = {
    shareFor(set, kind, budgetsMs, fixed = []) {
      asked.push([set.map(({ function: name }) => name), kind.gpuType, [...budgetsMs], [...fixed]]);
      return { shares: set.map((_, at) => fixed[at] ?? 0.5), source: 'nearest', unmet: [] };
    },
    slowdownsAt: () => undefined,
  };
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort', quotas } as const;
  const resident = runningTask(profiledTask('resident', 1000, 0.2, { function: '/a/r' }), 0.2);
  const waiting = [
    profiledTask('strict', 100, 0.2, { function: '/a/s', sloMs: 900 }),
    profiledTask('fixed', 100, 0.2, { function: '/a/f', share: 0.3 }),
    profiledTask('bounded', 100, 0.2, { function: '/a/b', maxShare: 0.4, arrivedAt: 1 }),
  ];
  const view = viewOf({ at: 1, gpus: [gpuOf('g', { running: [resident] })], waiting });
  const { starts } = makePolicy('faashare-paper', needs).decide(view, timer);
  expect(asked).toEqual([
    [['/a/r', '/a/s', '/a/f', '/a/b'], 't', [Infinity, 900, Infinity, Infinity], [0.2, undefined, 0.3, undefined]],
  ]);
  expect(Object.fromEntries(starts.map(({ task, share }) => [task, share]))).toEqual({
    strict: 0.5,
    fixed: 0.3,
    bounded: 0.4,
  });
});

test("without a table the shares are the guardrail's by the forest", () => {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const waiting = [profiledTask('a', 100, 0.9, { sloMs: 250 }), profiledTask('b', 100, 0.1, { function: '/a/g' })];
  const { starts } = makePolicy('faashare-paper', needs).decide(viewOf({ gpus: [gpuOf('g')], waiting }), timer);
  expect(starts.map(({ task, share }) => [task, share])).toEqual([
    ['a', 0.5],
    ['b', 0.5],
  ]);
});
