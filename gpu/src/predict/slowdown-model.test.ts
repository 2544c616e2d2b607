import { kindName } from '@gpuwhisk/common/gpu';
import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { capacityModel } from './slowdown-predictor.js';
import {
  decodeModel,
  encodeModel,
  ModelFormatError,
  leastSamples,
  modelPredictor,
  PredictorTable,
  trainModel,
  type SlowdownModel,
} from './slowdown-model.js';
import type { SlowdownSample } from './samples.js';
import type { CoLocated, SlowdownPredictor, WorkloadFeatures } from './slowdown-predictor.js';
import { inventedSamples } from '../testing/fixtures.js';

const key = { gpuType: 'a100-40', mode: 'mps' } as const;
const training = inventedSamples(150, 1);
const unseen = inventedSamples(200, 2);
const train = (samples: readonly SlowdownSample[], version = 1, seed = 1): SlowdownModel =>
  trainModel(key, samples, { version, seed });
const trained = train(training);

/** Mean of the error relative to the truth. */
function meanError(predictor: SlowdownPredictor): number {
  const errors = unseen.map(({ one, others, slowdown }) => Math.abs(predictor.slowdown(one, others) / slowdown - 1));
  return errors.reduce((sum, error) => sum + error, 0) / errors.length;
}

describe('a trained model', () => {
  test('knows runs that it has not seen better than the capacity model', () => {
    expect(meanError(modelPredictor(trained))).toBeLessThan(0.12);
    expect(meanError(modelPredictor(trained))).toBeLessThan(0.5 * meanError(capacityModel));
  });

  test('is a pure function of samples and seed', () => {
    expect(encodeModel(train(training))).toBe(encodeModel(trained));
    expect(encodeModel(train(training, 1, 2))).not.toBe(encodeModel(trained));
  });

  test.each([NaN, Infinity, -Infinity, 1e9, -1])('answers with a slowdown for features of %p', (value) => {
    const strange = { features: { smUtil: value, dramUtil: value, l2Util: value }, share: 0.5 };
    const { one } = unseen[0]!;
    for (const predictor of [modelPredictor(trained), capacityModel]) {
      for (const slowdown of [predictor.slowdown(strange, [one]), predictor.slowdown(one, [strange])]) {
        expect(slowdown).toBeGreaterThanOrEqual(1);
        expect(Number.isFinite(slowdown)).toBe(true);
      }
    }
  });

  test('never promises that sharing makes faster', () => {
    const light = { features: { smUtil: 0.01, dramUtil: 0.01, l2Util: 0.01 }, share: 1 };
    const faster = training.map((sample) => ({ ...sample, slowdown: 0.9 }));
    expect(modelPredictor(train(faster)).slowdown(light, [])).toBe(1);
  });
});

describe('figures that nothing told', () => {
  type Figure = 'dramUtil' | 'l2Util';
  const less = ({ features, share }: CoLocated, figures: readonly Figure[]): CoLocated => ({
    features: Object.fromEntries(
      Object.entries(features).filter(([name]) => !figures.includes(name as Figure)),
    ) as unknown as WorkloadFeatures,
    share,
  });
  const lacking = (samples: readonly SlowdownSample[], ...figures: Figure[]): SlowdownSample[] =>
    samples.map(({ one, others, slowdown }) => ({
      ...{ one: less(one, figures), others: others.map((other) => less(other, figures)), slowdown },
    }));

  test('of all samples make no difference, and a model is learned of the rest', () => {
    const blind = modelPredictor(train(lacking(training, 'dramUtil', 'l2Util')));
    for (const { one, others } of unseen.slice(0, 20)) {
      const without = others.map((other) => less(other, ['dramUtil', 'l2Util']));
      const slowdown = blind.slowdown(less(one, ['dramUtil', 'l2Util']), without);
      expect(slowdown).toBeGreaterThanOrEqual(1);
      expect(slowdown).toBeLessThan(1000);
    }
    expect(meanError(blind)).toBeLessThan(meanError(capacityModel));
  });

  test('of some samples are the mean of the others, not 0', () => {
    const half = training.map((sample, at) => (at % 2 === 0 ? sample : lacking([sample], 'l2Util')[0]!));
    const model = train(half);
    const told = half.flatMap(({ one, others }) => [one, ...others]).flatMap(({ features }) => features.l2Util ?? []);
    expect(model.typical.l2Util).toBeCloseTo(told.reduce((sum, one) => sum + one, 0) / told.length, 12);
    const { one, others } = unseen[0]!;
    const typical = { ...one, features: { ...one.features, l2Util: model.typical.l2Util } };
    const predictor = modelPredictor(model);
    expect(predictor.slowdown(less(one, ['l2Util']), others)).toBe(predictor.slowdown(typical, others));
    expect(meanError(predictor)).toBeLessThan(0.5 * meanError(capacityModel));
  });

  test('are worth nothing to a model from before, which was learned with 0 for them', () => {
    const [, line = ''] = encodeModel(trained).split('\n');
    const { typical, ...body } = JSON.parse(line) as { typical: object };
    expect(typical).toEqual(trained.typical);
    const before = JSON.stringify(body);
    const sha256 = createHash('sha256').update(before).digest('hex');
    const header = JSON.stringify({ format: 'gpuwhisk slowdown model', formatVersion: 1, sha256 });
    expect(decodeModel(`${header}\n${before}\n`)).toEqual({ ...trained, typical: { dramUtil: 0, l2Util: 0 } });
  });
});

describe('poisoned samples', () => {
  test('those that cannot be are left out', () => {
    const poison = [NaN, Infinity, 0, -3, 1e12].map((slowdown) => ({ ...training[0]!, slowdown }));
    expect(encodeModel(train([...poison, ...training]))).toBe(encodeModel(trained));
  });

  test('one in twenty a hundredfold wrong moves predictions by a few percent', () => {
    const poisoned = training.map((sample, i) => (i % 20 === 0 ? { ...sample, slowdown: 500 } : sample));
    expect(meanError(modelPredictor(train(poisoned)))).toBeLessThan(meanError(modelPredictor(trained)) + 0.06);
  });

  test('without enough good ones nothing is learned', () => {
    const bad = training.slice(leastSamples - 1).map((sample) => ({ ...sample, slowdown: NaN }));
    expect(() => train([...training.slice(0, leastSamples - 1), ...bad])).toThrow('A model takes 20 runs');
  });
});

describe('a stored model', () => {
  const text = encodeModel(trained);

  test('predicts what it did before', () => {
    const restored = decodeModel(text);
    expect(restored).toEqual(trained);
    for (const { one, others } of unseen.slice(0, 20)) {
      expect(modelPredictor(restored).slowdown(one, others)).toBe(modelPredictor(trained).slowdown(one, others));
    }
  });

  test.each([
    ['nothing', '', /it is no JSON/],
    ['something else', '{"a":1}\n{}\n', /does not begin with the format/],
    ['a later version', text.replace('"formatVersion":1', '"formatVersion":2'), /version 2 instead of 1/],
    ['half of it', text.slice(0, text.length / 2), /it is damaged/],
    ['one digit changed', text.replace('"sampleCount":150', '"sampleCount":151'), /it is damaged/],
  ])('%s is refused', (_, broken, reason) => {
    expect(() => decodeModel(broken)).toThrow(ModelFormatError);
    expect(() => decodeModel(broken)).toThrow(reason);
  });
});

describe('the table', () => {
  test('has a predictor for each GPU type and mode: the capacity model until one is learned', () => {
    const table = new PredictorTable();
    expect(table.predictor(key)).toBe(capacityModel);
    expect(table.put(trained)).toBe(true);
    expect(table.predictor({ ...key, mode: 'exclusive' })).toBe(capacityModel);
    const { one, others } = unseen[0]!;
    expect(table.predictor(key).slowdown(one, others)).toBe(modelPredictor(trained).slowdown(one, others));
    expect(table.deleteNamed(kindName(key))).toBe(true);
    expect(table.predictor(key)).toBe(capacityModel);
  });

  test('an older model does not take the place of a newer one', () => {
    const table = new PredictorTable();
    table.put({ ...trained, version: 3 });
    expect(table.put({ ...trained, version: 2 })).toBe(false);
    expect(table.list().map(({ version }) => version)).toEqual([3]);
    expect(table.model(key)?.version).toBe(3);
  });
});
