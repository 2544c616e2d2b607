import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { hasSet, sideRow, featureSets } from './degradation-features.js';
import { leastPairs, pairDegradation, trainPairModel, type PairModel, type PairSample } from './pair-degradation.js';
import { decodePairModel, encodePairModel } from './pair-model-codec.js';
import { regressionKinds, type RegressionKind } from './pair-regression.js';
import { ModelFormatError } from './slowdown-model.js';
import type { FeatureRecord } from './slowdown-predictor.js';

const key = { gpuType: 'v100', mode: 'mps', victim: 'workload', neighbour: 'function' } as const;

/** Models with a random size and character; heavy neighbours hurt those that need as much memory bandwidth. */
function inventedModels(count: number, seed: number): { model: string; features: FeatureRecord }[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const size = 1 + 9 * randomFraction(random);
    return {
      model: `m${i}`,
      features: {
        flops: 1e9 * size,
        params: 1e6 * (1 + 50 * randomFraction(random)),
        memoryMiB: 1000 * size,
        batch: 2 ** Math.floor(6 * randomFraction(random)),
        convLayers: Math.floor(50 * randomFraction(random)),
      },
    };
  });
}

const models = inventedModels(16, 1);
const truth = (victim: FeatureRecord, neighbour: FeatureRecord): number =>
  Math.max(0, (neighbour.memoryMiB! - victim.memoryMiB! / 2) / 5000) + (neighbour.convLayers! > 25 ? 0.4 : 0);
const all: PairSample[] = models.flatMap((victim) =>
  models.map((neighbour) => ({ victim, neighbour, degradation: truth(victim.features, neighbour.features) })),
);
const training = all.filter((_, i) => i % 3 === 0);
const unseen = all.filter((_, i) => i % 3 !== 0);
const train = (samples: readonly PairSample[], kinds?: readonly RegressionKind[]): PairModel =>
  trainPairModel(key, samples, { version: 1, seed: 7, ...(kinds && { kinds }) });
const trained = train(training);
/** Fast to learn. */
const simple: readonly RegressionKind[] = ['ridge'];

function rmsle(model: PairModel, samples: readonly PairSample[] = unseen): number {
  const squares = samples.map(({ victim, neighbour, degradation }) => {
    const predicted = pairDegradation(model, victim.features, neighbour.features).degradation;
    return (Math.log1p(predicted) - Math.log1p(degradation)) ** 2;
  });
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / squares.length);
}

test('a third of the pairs says more of the others than a plane through the same features', () => {
  const ridge = train(training, ['ridge']);
  expect(rmsle(trained)).toBeLessThan(0.8 * rmsle(ridge));
});

test('the blend is chosen unless another errs less by 5 % in a cross-validation; the errors of all are kept', () => {
  const { errors, regression } = trained.parts[0]!;
  expect(Object.keys(errors).sort()).toEqual([...regressionKinds].sort());
  const least = Math.min(...Object.values(errors));
  const { blend = NaN } = errors;
  expect(errors[regression.kind]).toBe(least < 0.95 * blend ? least : blend);
});

test('equal samples and seed give an equal model', () => {
  const text = (): string => JSON.stringify(encodePairModel(train(training, ['blend'])));
  expect(text()).toBe(text());
});

describe('samples at fault', () => {
  const [first] = training as [PairSample];

  test('degradations that cannot be are refused, small negative ones count as 0', () => {
    const poison = [NaN, Infinity, -Infinity, -0.6, 1e6].map((degradation) => ({ ...first, degradation }));
    const model = train(
      [...training, ...poison, { ...first, degradation: -0.1 }, { ...first, degradation: -0.5 }],
      simple,
    );
    expect(model.counts).toEqual({
      kept: training.length + 2,
      clamped: 2,
      refused: 5,
      featureless: 0,
      ignoredFeatures: 0,
    });
  });

  test('features that cannot be count as absent', () => {
    const features: FeatureRecord = {
      ...first.victim.features,
      memoryMiB: NaN,
      batch: -1,
      convLayers: 1e30,
      smUtil: 7,
    };
    const model = train([...training, { ...first, victim: { model: 'odd', features } }], simple);
    expect(model.counts.ignoredFeatures).toBe(4);
    const row = sideRow(features, 'static');
    const at = (name: (typeof featureSets.static)[number]): number => row[featureSets.static.indexOf(name)]!;
    expect([at('memoryMiB'), at('batch'), at('convLayers')]).toEqual([NaN, NaN, NaN]);
    expect(at('flops')).toBeCloseTo(Math.log1p(features.flops!));
    const { degradation } = pairDegradation(model, features, first.neighbour.features);
    expect(degradation).toBeGreaterThanOrEqual(0);
  });

  test('sides without features are counted, and without enough samples nothing is learned', () => {
    const bare = { ...first, victim: { model: 'bare', features: { batch: 3 } } };
    expect(train([...training, bare], simple).counts.featureless).toBe(1);
    expect(() => train([...training.slice(0, leastPairs - 1), bare])).toThrow(
      'A pair model takes 20 samples with features, and there are 19.',
    );
  });
});

describe('a prediction', () => {
  test('names its source: the mean where a side has no features', () => {
    const [one, other] = models as [(typeof models)[number], (typeof models)[number]];
    expect(pairDegradation(trained, one.features, other.features).basis).toBe('static');
    const unknown = pairDegradation(trained, {}, other.features);
    expect(unknown.basis).toBe('mean');
    expect(Math.log1p(unknown.degradation)).toBeCloseTo(trained.mean);
  });

  test('reads solo metrics where static features are missing, if samples had them', () => {
    const solo = (sample: PairSample): PairSample => {
      const side = ({ model, features }: PairSample['victim']): PairSample['victim'] => ({
        model,
        features: { smUtil: features.memoryMiB! / 20_000, memoryMiB: features.memoryMiB! },
      });
      return { ...sample, victim: side(sample.victim), neighbour: side(sample.neighbour) };
    };
    const model = train([...training, ...training.map(solo)], simple);
    expect(model.parts.map(({ set }) => set)).toEqual(['static', 'measured']);
    const { victim, neighbour } = solo(unseen[0]!);
    expect(pairDegradation(model, victim.features, neighbour.features).basis).toBe('measured');
    // One side of each kind has no set in common.
    expect(hasSet(unseen[0]!.victim.features, 'measured')).toBe(false);
    expect(pairDegradation(model, unseen[0]!.victim.features, neighbour.features).basis).toBe('mean');
  });

  test.each(regressionKinds)('of %s stays within what was measured, however odd the features', (kind) => {
    const model = train(training, [kind]);
    const most = Math.max(...training.map(({ degradation }) => degradation));
    const odd = [0, 1e16].map((value) => Object.fromEntries(featureSets.static.map((name) => [name, value])));
    for (const one of odd) {
      for (const other of odd) {
        const { degradation } = pairDegradation(model, one, other);
        expect(degradation).toBeGreaterThanOrEqual(0);
        expect(degradation).toBeLessThanOrEqual(most * (1 + 1e-9));
      }
    }
  });
});

describe('a stored model', () => {
  test.each(regressionKinds)('with %s predicts what it did before', (kind) => {
    const model = train(training, [kind]);
    const restored = decodePairModel(JSON.parse(JSON.stringify(encodePairModel(model))));
    expect(JSON.stringify(encodePairModel(restored))).toBe(JSON.stringify(encodePairModel(model)));
    const { victim, neighbour } = unseen[0]!;
    expect(pairDegradation(restored, victim.features, neighbour.features)).toEqual(
      pairDegradation(model, victim.features, neighbour.features),
    );
  });

  const document = encodePairModel(trained);
  const [part] = document.parts as [(typeof document.parts)[number]];
  test.each([
    ['nothing', null, /format is not/],
    ['another format', { ...document, format: 'x' }, /format is not/],
    ['a later version', { ...document, formatVersion: 2 }, /version 2 instead of 1/],
    ['no parts', { ...document, parts: [] }, /no parts/],
    ['other features', { ...document, parts: [{ ...part, features: ['a'] }] }, /features of set 'static' are a/],
    ['an unknown regression', { ...document, parts: [{ ...part, kind: 'net' }] }, /'net' is unknown/],
    ['half a forest', { ...document, parts: [{ ...part, kind: 'forest', forest: undefined }] }, /forest is not whole/],
    ['half of its features', { ...document, parts: [{ ...part, typical: 'AAAA' }] }, /is not whole/],
    ['a part that is none', { ...document, parts: [null] }, /is not whole/],
  ])('%s is refused', (_, broken, reason) => {
    expect(() => decodePairModel(broken)).toThrow(ModelFormatError);
    expect(() => decodePairModel(broken)).toThrow(reason);
  });
});
