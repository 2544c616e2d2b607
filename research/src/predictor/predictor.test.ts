import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { errorsOf } from '../experiments/predictor.js';
import { setOf, type InterferenceSet, type Side } from '../data/interference.js';
import { fitRidge } from './learners.js';
import { choiceLosses, splits } from './splits.js';

/** Every pair of twelve invented workloads of three models; memory-bound ones suffer from memory-bound ones. */
function inventedSet(): InterferenceSet {
  const random = seededRandom(1);
  const workloads = Array.from({ length: 12 }, (_, i) => ({
    workload: `w${i}`,
    model: `m${i % 3}`,
    memory: randomFraction(random),
    arithmetic: randomFraction(random),
  }));
  type Workload = (typeof workloads)[number];
  const side = (one: Workload, other: Workload): Side => ({
    workload: one.workload,
    model: one.model,
    solo: { memory: one.memory, arithmetic: one.arithmetic },
    memoryIntensity: one.memory,
    slowdown: Math.max(1, one.arithmetic + other.arithmetic) + 2 * one.memory * other.memory,
  });
  const pairs = workloads.flatMap((one, i) =>
    workloads.slice(i + 1).map((other) => [side(one, other), side(other, one)] as const),
  );
  return setOf('invented', pairs);
}

const set = inventedSet();

test('a set has a row for each side, with the features of both', () => {
  expect(set.featureNames).toEqual([
    'own.memory',
    'own.arithmetic',
    'own.is.m0',
    'own.is.m1',
    'own.is.m2',
    'other.memory',
    'other.arithmetic',
    'other.is.m0',
    'other.is.m1',
    'other.is.m2',
  ]);
  const [one, other] = set.rows;
  expect(Array.from(one?.features.subarray(0, 5) ?? [])).toEqual(Array.from(other?.features.subarray(5) ?? []));
  expect(one?.features).toHaveLength(10);
  expect(one?.pair).toBe(other?.pair);
  expect(new Set(set.rows.map(({ pattern }) => pattern))).toEqual(new Set(['memory', 'mixed', 'compute']));
});

test.each(Object.keys(splits) as (keyof typeof splits)[])(
  'split by %s: nothing is learned from and judged by',
  (kind) => {
    for (let seed = 0; seed < 10; seed += 1) {
      for (const { train, test: judged } of splits[kind](set, seed)) {
        expect(train.filter((row) => judged.includes(row))).toHaveLength(0);
        expect(train.length).toBeGreaterThan(0);
        expect(train.length).toBeLessThanOrEqual(0.21 * set.rows.length);
        const learned = new Set(train.map(({ pair }) => pair));
        if (kind !== 'random') expect(judged.filter(({ pair }) => learned.has(pair))).toHaveLength(0);
      }
    }
  },
);

test('leaving two workloads out a seed leaves each out in turn, one pattern after the other likewise', () => {
  const folds = Array.from({ length: 6 }, (_, seed) => splits.workload(set, seed)).flat();
  const left = new Set<string>();
  for (const { train, test: judged } of folds) {
    const everywhere = [...new Set(judged.flatMap(({ workload, neighbour }) => [workload, neighbour]))].filter((each) =>
      judged.every(({ workload, neighbour }) => workload === each || neighbour === each),
    );
    expect(everywhere).toHaveLength(1);
    expect(train.some(({ workload }) => workload === everywhere[0])).toBe(false);
    for (const each of everywhere) left.add(each);
  }
  expect(left.size).toBe(12);
  for (const { train, test: judged } of splits.pattern(set, 1)) {
    const [left] = judged;
    expect(left).toBeDefined();
    expect(judged.every(({ pattern }) => pattern === left?.pattern)).toBe(true);
    expect(train.some(({ pattern }) => pattern === left?.pattern)).toBe(false);
  }
});

test('ridge regression finds a plane', () => {
  const plane = set.rows.map((row) => {
    const [first = NaN, , , , , , seventh = NaN] = row.features;
    return { ...row, slowdown: 2 + 3 * first - seventh };
  });
  const predict = fitRidge(plane);
  for (const { features, slowdown } of plane.slice(0, 20)) expect(predict(features)).toBeCloseTo(slowdown, 2);
});

test('ours errs less than ridge and a constant where slowdowns bend and multiply', () => {
  const figures = new Map(errorsOf(set, 'pair', 1, 2).map(({ name, value }) => [name, value]));
  expect(figures.get('maeVsRidge.invented.pair')).toBeLessThan(1);
  expect(figures.get('maeVsConstant.invented.pair')).toBeLessThan(0.7);
  expect(figures.get('mae.literal.invented.pair')).toBeGreaterThan(0);
});

test('choosing partners by the truth loses nothing, by its reverse a lot', () => {
  const truth = new Map(set.rows.map((row) => [row.features, row.slowdown]));
  const right = choiceLosses(set, (features) => truth.get(features) ?? NaN, 1);
  expect(right.every((loss) => Math.abs(loss) < 1e-12)).toBe(true);
  const wrong = choiceLosses(set, (features) => 1 / (truth.get(features) ?? NaN), 1);
  expect(Math.min(...wrong)).toBeGreaterThan(0.02);
});

test('jobs that were not measured together take turns', () => {
  const few = { ...set, rows: set.rows.slice(0, 2) };
  // Alone, one pair is all there is to choose.
  expect(choiceLosses(few, () => 1, 1).every((loss) => loss === 0)).toBe(true);
});
