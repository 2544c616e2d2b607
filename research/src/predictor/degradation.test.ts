import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { splitPairs } from '../experiments/smore-predictor.js';
import { degradationLearners, errorsOn } from './degradation-learners.js';
import type { DegradationSample, DegradationSet } from './degradation-sets.js';

/** Every pair of twelve invented workloads, both sides; D is the product of the fills. */
function inventedSet(): DegradationSet {
  const random = seededRandom(1);
  const workloads = Array.from({ length: 12 }, (_, i) => ({
    model: `m${i % 4}/${i}`,
    features: { smUtil: randomFraction(random), soloMs: 1 + i },
  }));
  type Workload = (typeof workloads)[number];
  const sample = (victim: Workload, neighbour: Workload): DegradationSample => ({
    pair: [victim.model, neighbour.model].sort().join(' + '),
    models: [victim.model.slice(0, 2), neighbour.model.slice(0, 2)],
    victim,
    neighbour,
    degradation: 2 * victim.features.smUtil * neighbour.features.smUtil,
  });
  const samples = workloads.flatMap((one, i) =>
    workloads.slice(i + 1).flatMap((other) => [sample(one, other), sample(other, one)]),
  );
  return { name: 'invented', samples };
}

const set = inventedSet();

test('a split keeps both sides of a pair together, and has the share of the pairs that was asked for', () => {
  for (let seed = 0; seed < 10; seed += 1) {
    const { train, test: judged } = splitPairs(set, 0.2, seed);
    const learned = new Set(train.map(({ pair }) => pair));
    expect(judged.filter(({ pair }) => learned.has(pair))).toEqual([]);
    expect(train.length + judged.length).toBe(set.samples.length);
    expect(learned.size).toBe(13);
  }
  expect(splitPairs(set, 0.2, 1)).toEqual(splitPairs(set, 0.2, 1));
});

test('RMSLE and MAE are those of equation 3.3 and of the differences; D below 0 counts as 0', () => {
  const [first] = set.samples as [DegradationSample];
  const samples = [1, 3, -0.2].map((degradation) => ({ ...first, degradation }));
  const { rmsle, mae } = errorsOn(samples, () => 1);
  expect(rmsle).toBeCloseTo(Math.sqrt((0 + Math.log(2) ** 2 + Math.log(2) ** 2) / 3), 12);
  expect(mae).toBeCloseTo(1, 12);
});

test('ours errs less than ridge, three neighbours and a constant where fills multiply', () => {
  const { train, test: judged } = splitPairs(set, 0.4, 1);
  const error = (name: keyof typeof degradationLearners): number =>
    errorsOn(judged, degradationLearners[name](train, 'measured', 1)).rmsle;
  const ours = error('ours');
  for (const name of ['ridge', 'nearest3', 'constant'] as const) expect(ours).toBeLessThan(error(name));
});
