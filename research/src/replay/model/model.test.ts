import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { bootstrapModels, fitModel, predictPair, nonNegativeLeastSquares, validate } from './fit.js';
import {
  effectiveShares,
  mpsSlowdowns,
  saturationOf,
  stretchAt,
  stretchTable,
  timesliceSlowdowns,
} from '@gpuwhisk/bench/replay/model/gpu-model';
import type { ModelParameters, ModelWorkload } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { IgniterData, PairSide } from './igniter.js';
import { nonIncreasing } from '../../data/isotonic.js';
import { latencyAt, latencySurface, saturationShare } from './latency-surface.js';

test('neighbours that rise are pooled to their mean, over several steps', () => {
  expect(nonIncreasing([5, 3, 4, 1])).toEqual([5, 3.5, 3.5, 1]);
  expect(nonIncreasing([1, 2, 6])).toEqual([3, 3, 3]);
  expect(nonIncreasing([])).toEqual([]);
});

describe('a latency surface', () => {
  const points = [1, 4].flatMap((batch) =>
    [0.25, 0.5, 1].map((share) => ({ batch, share, latencyMs: Math.max(batch / share, 2 * batch) })),
  );
  const surface = latencySurface([...points, { batch: 1, share: 0.1, latencyMs: 10 }]);

  test('has the shares that all batches were measured at, and meets its points', () => {
    expect(surface.shares).toEqual([0.25, 0.5, 1]);
    for (const { batch, share, latencyMs } of points)
      expect(latencyAt(surface, batch, share)).toBeCloseTo(latencyMs, 9);
  });

  test('is bilinear in logarithms between them', () => {
    expect(latencyAt(surface, 2, 0.25)).toBeCloseTo(8, 9);
    expect(latencyAt(surface, 1, Math.sqrt(0.125))).toBeCloseTo(Math.sqrt(8), 9);
  });

  test.each([
    [8, 0.5],
    [1, 0.2],
    [1, NaN],
  ])('does not go beyond what was measured: batch %d at %d', (batch, share) => {
    expect(() => latencyAt(surface, batch, share)).toThrow(RangeError);
  });

  test('knows from which share on more does not help', () => expect(saturationShare(surface, 1)).toBe(0.5));
});

test.each([
  [[0.3, 0.4], 1, [0.3, 0.4]],
  [[1, 1], 1, [0.5, 0.5]],
  [[0.2, 1, 1], 1, [0.2, 0.4, 0.4]],
  [[1, 0.5], 0.6, [0.5, 0.5]],
])('shares of %j, saturated at %d, come to %j', (shares, saturation, expected) => {
  effectiveShares(shares.map((share) => ({ share, saturation }))).forEach((share, i) =>
    expect(share).toBeCloseTo(expected[i] as number, 12),
  );
});

test('least squares without negative coefficients', () => {
  const rows = [
    [1, 0],
    [1, 1],
    [1, 2],
  ];
  expect(nonNegativeLeastSquares(rows, [1, 3, 5])).toEqual([expect.closeTo(1, 9), expect.closeTo(2, 9)]);
  expect(nonNegativeLeastSquares(rows, [3, 2, 1])).toEqual([expect.closeTo(2, 9), 0]);
});

const parameters: ModelParameters = {
  contention: { base: 0.05, perL2: 0.1, perDram: 0.2 },
  power: { idleW: 50, capW: 300, baseMhz: 1500, mhzPerW: 1.5 },
  noise: 0,
};

function workload(name: string, saturation: number, powerW = 100): ModelWorkload {
  const stretch = stretchTable((share) => Math.max(1, saturation / share));
  return { name, stretch, saturation: saturationOf(stretch), l2Util: 0.2, dramUtil: 0.5, powerW };
}

describe('the model of MPS', () => {
  test('alone only the share counts', () => {
    const one = workload('one', 0.5);
    expect([...mpsSlowdowns(parameters, [{ workload: one, share: 0.6 }])]).toEqual([1]);
    expect(mpsSlowdowns(parameters, [{ workload: one, share: 0.25 }])[0]).toBeCloseTo(2, 6);
    expect(stretchAt(one, 0.255)).toBeCloseTo((2 + 0.5 / 0.26) / 2, 6);
  });

  test('a neighbour costs its traffic, at its speed', () => {
    const fits = workload('fits', 0.5);
    const together = mpsSlowdowns(parameters, [
      { workload: fits, share: 0.5 },
      { workload: fits, share: 0.25 },
    ]);
    expect(together[0]).toBeCloseTo(1 + 0.05 + (0.1 * 0.2 + 0.2 * 0.5) / 2, 6);
    expect(together[1]).toBeCloseTo(2 * (1 + 0.05 + 0.1 * 0.2 + 0.2 * 0.5), 6);
  });

  test('watts above the cap cost clock, at most half of it', () => {
    const hot = (powerW: number): Float64Array => {
      const clients = [1, 2].map(() => ({ workload: workload('hot', 0.5, powerW), share: 0.5 }));
      return mpsSlowdowns({ ...parameters, contention: { base: 0, perL2: 0, perDram: 0 } }, clients);
    };
    expect(hot(125)[0]).toBeCloseTo(1, 9);
    expect(hot(175)[0]).toBeCloseTo(1 / 0.9, 9);
    expect(hot(100_000)[0]).toBeCloseTo(2, 9);
  });

  test('a client that takes turns waits for all others', () => expect([...timesliceSlowdowns(3)]).toEqual([3, 3, 3]));
});

/** Pairs that obey the model, at partitions that leave the power below the cap. */
const sides: PairSide[] = [1, 2, 3, 4].flatMap((batch) =>
  ['a', 'b'].map((model): PairSide => {
    const neighbour = { model: 'b', batch, share: 0.5, l2Util: 0.1 * batch, dramUtil: 0.05 * batch * batch };
    return {
      pair: `${model} ${batch}`,
      model,
      batch,
      share: 0.5,
      slowdown: 1.05 + 0.1 * neighbour.l2Util + 0.2 * neighbour.dramUtil,
      deviation: 0.01,
      neighbour,
    };
  }),
);
const data: IgniterData = {
  pairs: sides,
  power: ['a', 'b'].flatMap((model) =>
    [1, 4].flatMap((batch) => [0.1, 1].map((share) => ({ model, batch, share, powerW: 60 + 100 * share }))),
  ),
  hardware: [
    { processes: 1, powerW: 120, frequencyMhz: 1500 },
    { processes: 2, powerW: 200, frequencyMhz: 1500 },
    { processes: 4, powerW: 300, frequencyMhz: 1440 },
  ],
};

describe('the fit', () => {
  const fitted = fitModel(data);

  test('finds what the data was made with', () => {
    expect(fitted.contention.base).toBeCloseTo(0.05, 9);
    expect(fitted.contention.perL2).toBeCloseTo(0.1, 9);
    expect(fitted.contention.perDram).toBeCloseTo(0.2, 9);
    expect(fitted.power.mhzPerW).toBeCloseTo(1, 9);
    expect(fitted.noise).toBe(0.01);
    for (const side of sides) expect(predictPair(fitted, side, data.power)).toBeCloseTo(side.slowdown, 9);
  });

  test.each(['pair', 'model'] as const)('is right about a %s that it has not seen, a constant is not', (leftOut) => {
    const alike = {
      ...data,
      pairs: sides.map((side) => ({ ...side, neighbour: { ...side.neighbour, model: side.model } })),
    };
    const { model, constant } = validate(leftOut === 'pair' ? data : alike, leftOut);
    expect(model).toBeLessThan(1e-9);
    expect(constant).toBeGreaterThan(0.01);
  });

  test('is drawn again from the pairs, the same for the same seed', () => {
    const draws = bootstrapModels(data, 3, seededRandom(1));
    expect(draws).toEqual(bootstrapModels(data, 3, seededRandom(1)));
    expect(draws).toHaveLength(3);
  });
});
