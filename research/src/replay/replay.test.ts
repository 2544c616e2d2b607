import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { alike, type AlikeGpus } from '@gpuwhisk/bench/replay/alike';
import { replay, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { own, pairedInterval, ratio, reduction } from '@gpuwhisk/bench/statistics';
import { bursty, fromTrace, poisson } from '@gpuwhisk/bench/replay/jobs';
import { metricsOf } from '@gpuwhisk/bench/replay/metrics';
import { named } from './setting.js';
import { lookupTruth } from './truth.js';

const cluster: AlikeGpus = { gpus: 1, type: 'v100', mode: 'mps', memoryMiB: 1000, perNode: 8 };
/** A truth in which n tasks each run n times slower. */
const turns: GpuTruth = {
  noise: 0,
  slowdowns: (clients) => new Float64Array(clients.length).fill(clients.length),
  used: () => 0.5,
};

function job(id: string, more: Partial<ReplayJob['task']> = {}, startMs = 0): ReplayJob {
  return {
    workload: id,
    soloMs: 100,
    startMs,
    task: {
      id,
      function: `/guest/${id}`,
      version: '0.0.1',
      namespace: 'guest',
      batch: 1,
      gpus: 1,
      memoryMiB: 400,
      soloMs: 100,
      features: { smUtil: 0.5, dramUtil: 0.1, l2Util: 0.1 },
      arrivedAt: 0,
      class: 'inference',
      ...more,
    },
  };
}

/** A policy that starts all waiting tasks at once on the first GPU. */
function greedyPolicy(observed: ObservedRun[] = []): Policy {
  return {
    name: 'all at once',
    decide: ({ ledger, waiting }) => ({
      starts: ledger.ledger
        .accounts()
        .slice(0, 1)
        .flatMap((gpu) => waiting.map(({ id }) => ({ task: id, gpu: gpu.id, share: 1, reason: '' }))),
      refused: [],
      bestEffort: [],
      order: [],
      rejected: [],
    }),
    observe: (run) => void observed.push(run),
  };
}

const finishes = (jobs: ReplayJob[], policy: Policy, truth = turns): Record<string, number> =>
  Object.fromEntries(
    replay(jobs, alike(cluster), truth, policy, seededRandom(1)).finished.map((one) => [
      one.job.task.id,
      one.finishedAt,
    ]),
  );

describe('the simulator', () => {
  test('recomputes progress when a job starts or ends', () => {
    // a alone for 50 ms, both at half speed until a has its other 50 ms, then b alone.
    expect(finishes([job('a'), job('b', { arrivedAt: 50 })], greedyPolicy())).toEqual({ a: 150, b: 200 });
  });

  test('a start holds memory and slows nobody down', () => {
    expect(finishes([job('a'), job('b', {}, 60)], greedyPolicy())).toEqual({ a: 140, b: 200 });
  });

  test('tells a policy how long its runs took, and beside whom', () => {
    const observed: ObservedRun[] = [];
    finishes([job('a'), job('b', { arrivedAt: 50 })], greedyPolicy(observed));
    expect(observed.map(({ task, ranMs }) => [task.id, ranMs])).toEqual([
      ['a', 150],
      ['b', 150],
    ]);
    expect(observed[0]?.beside).toEqual([expect.objectContaining({ share: 1, part: expect.closeTo(2 / 3, 9) })]);
  });

  test('a late job continues as best effort and counts as a violation', () => {
    const jobs = [job('a', { sloMs: 150 }), job('b', { sloMs: 120 })];
    const one: Policy = named('exclusive')(
      {
        predictorOf: () => ({ slowdown: () => 1 }),
        random: seededRandom(1),
        admission: 'best-effort',
      },
      { gpus: 1, jobs: 2, length: 1, startMs: 0, sloFactor: 4 },
    );
    const run = replay(jobs, alike(cluster), turns, one, seededRandom(1));
    expect(metricsOf(run, 2, 30_000, 1)).toMatchObject({
      makespanMs: 200,
      jctMs: 150,
      violations: 0.5,
      stp: 1,
      utilisation: 0.5,
    });
  });

  test.each([
    ['lacks the memory', greedyPolicy(), [job('a', { memoryMiB: 700 }), job('b')]],
    [
      'waiting for ever',
      { name: 'idle', decide: () => ({ starts: [], refused: [], bestEffort: [], order: [], rejected: [] }) },
      [job('a')],
    ],
  ])('a policy that does what cannot be is an error: %s', (message, policy, jobs) => {
    expect(() => replay(jobs, alike(cluster), turns, policy, seededRandom(1))).toThrow(message);
  });

  test('one seed, one run; noise is the same whatever the policy', () => {
    const noisy = { ...turns, noise: 0.1 };
    const jobs = [job('a'), job('b', { arrivedAt: 500 })];
    expect(finishes(jobs, greedyPolicy(), noisy)).toEqual(finishes(jobs, greedyPolicy(), noisy));
    expect(finishes(jobs, greedyPolicy(), noisy).a).not.toBe(100);
  });
});

test('the lookup tier knows measured pairs and nothing else', () => {
  const truth = lookupTruth([{ a: 'x', b: 'y', slowdownA: 1.1, slowdownB: 1.4 }], new Map([['x', 0.4]]));
  const client = (workload: string): { workload: string; share: number } => ({ workload, share: 1 });
  expect([...truth.slowdowns([client('y'), client('x')])]).toEqual([1.4, 1.1]);
  expect([...truth.slowdowns([client('x')])]).toEqual([1]);
  expect(() => truth.slowdowns([client('x'), client('x')])).toThrow('was not measured');
  expect(() => truth.slowdowns([client('x'), client('y'), client('x')])).toThrow('more than two');
  expect(truth.used([client('x')])).toBe(0.4);
});

test.each([
  ['poisson', poisson],
  ['bursty', bursty],
  ['a trace', fromTrace(Array.from({ length: 3000 }, (_, i) => i * i))],
])('arrivals of %s rise, with a mean distance of 1', (_, arrivals) => {
  const times = arrivals(2000, seededRandom(3));
  expect(times.every((time, i) => time >= (times[i - 1] ?? 0))).toBe(true);
  const mean = (times.at(-1) ?? NaN) / times.length;
  expect(mean).toBeGreaterThan(0.8);
  expect(mean).toBeLessThan(1.2);
});

test('paired intervals: what all pairs agree on is certain, what is noise is not', () => {
  const random = seededRandom(5);
  const theirs = Array.from({ length: 30 }, () => 1 + randomFraction(random));
  const half = theirs.map((value) => value / 2);
  expect(pairedInterval(half, theirs, reduction, random)).toEqual({
    mean: expect.closeTo(0.5, 9),
    low: expect.closeTo(0.5, 9),
    high: expect.closeTo(0.5, 9),
  });
  const shuffled = [...theirs.slice(1), ...theirs.slice(0, 1)];
  const even = pairedInterval(shuffled, theirs, ratio, random);
  expect(even.low).toBeLessThan(1);
  expect(even.high).toBeGreaterThan(1);
  expect(pairedInterval([3], [3], own, random).mean).toBe(3);
  expect(() => pairedInterval([], [], own, random)).toThrow(RangeError);
});
