import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Member, SharedPlace } from './degradation-predictor.js';
import { trainPairModel, type MemberKind, type PairModel } from './pair-degradation.js';
import { SmoreDegradation } from './smore-degradation.js';
import { capacityModel } from './slowdown-predictor.js';

const key = { gpuType: 'a100-40', mode: 'mps' } as const;

function member(id: string, kind: MemberKind, fill?: number, model = id): Member {
  return { id, kind, model, ...(fill !== undefined && { features: { smUtil: fill, soloMs: 10 * fill } }) };
}

/** A model of invented pairs in which D is the product of the fills, times `factor`. */
function modelOf(victim: MemberKind, neighbour: MemberKind, factor: number, version = 1): PairModel {
  const random = seededRandom(1);
  const samples = Array.from({ length: 100 }, (_, i) => {
    const [one, other] = [0, 0].map(() => randomFraction(random)) as [number, number];
    return {
      victim: { model: `v${i}`, features: { smUtil: one, soloMs: 10 * one } },
      neighbour: { model: `n${i}`, features: { smUtil: other, soloMs: 10 * other } },
      degradation: factor * one * other,
    };
  });
  return trainPairModel({ ...key, victim, neighbour }, samples, { version, seed: 1, kinds: ['forest'] });
}

const models = [
  modelOf('workload', 'function', 1),
  modelOf('function', 'workload', 2),
  modelOf('function', 'function', 0.5),
];
const withModels = (): SmoreDegradation => {
  const predictor = new SmoreDegradation();
  for (const model of models) predictor.put(model);
  return predictor;
};

const train = member('job', 'workload', 0.6);
const [f, g, h] = [member('f', 'function', 0.5), member('g', 'function', 0.3), member('h', 'function', 0.8)];
const place = (...members: Member[]): SharedPlace => ({ ...key, members });

describe('a prediction', () => {
  test('of a workload is the sum over functions (3.4), of a function that over workload and functions (3.5)', () => {
    const predictor = withModels();
    const pair = (one: Member, other: Member): number => predictor.pair(key, one, other).degradation;
    const [ofTrain, ofF, ofG] = predictor.predict(place(train, f), g);
    expect(ofTrain?.degradation).toBeCloseTo(pair(train, f) + pair(train, g), 12);
    expect(ofF?.degradation).toBeCloseTo(pair(f, train) + pair(f, g), 12);
    expect(ofG?.degradation).toBeCloseTo(pair(g, train) + pair(g, f), 12);
    expect(ofG).toMatchObject({ id: 'g', basis: 'measured' });
    expect(ofG?.terms.map(({ from, weight }) => [from, weight])).toEqual([
      ['job', 1],
      ['f', 1],
    ]);
    // Two models: a function suffers twice as much from the workload as the workload does from it.
    expect(pair(f, train) / pair(train, f)).toBeCloseTo(2, 0);
  });

  test('of a member alone is 0, and of an empty place there is none', () => {
    expect(withModels().predict(place(train))).toEqual([{ id: 'job', degradation: 0, terms: [] }]);
    expect(withModels().predict(place())).toEqual([]);
  });

  test('takes instances of one function for different members', () => {
    const twin = { ...f, id: 'f' };
    const [ofTrain, first] = withModels().predict(place(train, f, twin));
    expect(ofTrain?.terms).toHaveLength(2);
    expect(first?.terms.map(({ from }) => from)).toEqual(['job', 'f']);
  });

  test('without a model comes from the capacity model, without figures from the default', () => {
    const predictor = new SmoreDegradation({ unknownDegradation: 0.7 });
    const [ofTrain] = predictor.predict(place(train, h));
    const solo = (fill: number) => ({ features: { smUtil: fill }, share: 1 });
    expect(ofTrain).toMatchObject({ basis: 'capacity' });
    expect(ofTrain?.degradation).toBeCloseTo(capacityModel.slowdown(solo(0.6), [solo(0.8)]) - 1, 12);
    expect(predictor.predict(place(train), member('x', 'function'))).toMatchObject([
      { degradation: 0.7, basis: 'default' },
      { degradation: 0.7, basis: 'default' },
    ]);
    expect(withModels().predict(place(train, f), member('x', 'function'))[0]).toMatchObject({ basis: 'mean' });
  });

  test('of another GPU type or mode uses no model of this one', () => {
    const other = { gpuType: 'v100', mode: 'mps', members: [train, f] } as const;
    expect(withModels().predict(other)[0]?.basis).toBe('capacity');
    expect(withModels().predict({ ...other, gpuType: 'a100-40', mode: 'timeslice' })[0]?.basis).toBe('capacity');
  });
});

describe('the table', () => {
  test('answers as fresh predictions do, until a new model comes', () => {
    const predictor = withModels();
    const before = predictor.predict(place(train, f), g);
    expect(predictor.precompute(key, [train], [f, g, h])).toEqual({ pairs: 3 + 3 + 1 + 9, leftOut: 0 });
    expect(predictor.predict(place(train, f), g)).toEqual(before);
    // Names alone are enough for a pair of the table.
    expect(predictor.predict(place(member('job', 'workload'), member('f', 'function')))[0]).toMatchObject({
      basis: 'measured',
    });
    expect(predictor.put(modelOf('workload', 'function', 3, 2))).toBe(true);
    const [changed] = predictor.predict(place(train, f), g);
    expect(changed?.degradation).toBeGreaterThan(2 * (before[0]?.degradation ?? NaN));
    expect(predictor.put(modelOf('workload', 'function', 1, 1))).toBe(false);
  });

  test('is bounded: pairs of functions are left out first', () => {
    const predictor = new SmoreDegradation({ mostPairs: 8 });
    expect(predictor.precompute(key, [train], [f, g, h])).toEqual({ pairs: 7, leftOut: 9 });
    expect(predictor.predict(place(f, g))).toHaveLength(2);
  });
});

describe('observations', () => {
  test('teach what pairs alone do not show: three together are worse than the sum', () => {
    const predictor = withModels();
    const here = place(train, f, g);
    const [before] = predictor.predict(here);
    const real = 1.8 * (before?.degradation ?? NaN);
    for (let i = 0; i < 100; i += 1) predictor.observe(here, [{ id: 'job', degradation: real }]);
    expect(predictor.predict(here)[0]?.degradation).toBeCloseTo(real, 2);
    // Nothing was said of functions.
    expect(predictor.predict(here)[1]?.terms.map(({ weight }) => weight)).toEqual([1, 1]);
  });

  test('that cannot be are refused and counted, small negative ones count as 0', () => {
    const predictor = withModels();
    const seen = predictor.observe(place(train, f), [
      { id: 'job', degradation: NaN },
      { id: 'job', degradation: -2 },
      { id: 'nothing', degradation: 1 },
      { id: 'f', degradation: -0.1 },
    ]);
    expect(seen).toMatchObject([
      { refused: 'a degradation of NaN is not from -0.5 to 1000' },
      { refused: 'a degradation of -2 is not from -0.5 to 1000' },
      { refused: "there is no member 'nothing'" },
      { id: 'f', measured: 0 },
    ]);
    expect(predictor.refused).toBe(3);
    expect(predictor.observe(place(train), [{ id: 'job', degradation: 0.3 }])).toEqual([
      { id: 'job', predicted: 0, measured: 0.3 },
    ]);
  });

  test('tell which pair drifts, and clear it once predictions have followed', () => {
    const predictor = withModels();
    const observe = (count: number, degradation: number): void => {
      for (let i = 0; i < count; i += 1) {
        predictor.observe(place(train, f), [{ id: 'job', degradation }]);
        const [fine] = predictor.predict(place(train, g));
        predictor.observe(place(train, g), [{ id: 'job', degradation: fine?.degradation ?? NaN }]);
      }
    };
    observe(12, 0.9);
    expect(predictor.drifts()).toMatchObject([{ victim: 'job', neighbour: 'f', direction: 'worse' }]);
    observe(100, 0.9);
    expect(predictor.drifts()).toEqual([]);
  });
});

describe('a model', () => {
  test('that is withdrawn leaves its pairs to their figures, and the corrections of one kind of pair go alone', () => {
    const predictor = withModels();
    const figures = new SmoreDegradation().pair(key, train, f);
    expect(predictor.pair(key, train, f).basis).toBe('measured');
    const jobAndFunction = { ...key, victim: 'workload', neighbour: 'function' } as const;
    for (let i = 0; i < 15; i += 1) {
      predictor.observe(place(train, f), [
        { id: 'job', degradation: 2 },
        { id: 'f', degradation: 2 },
      ]);
    }
    const [before, ofF] = predictor.predict(place(train, f));
    expect(predictor.withdraw(jobAndFunction)).toBe(true);
    predictor.forgetCorrections(jobAndFunction);
    expect(predictor.withdraw(jobAndFunction)).toBe(false);
    expect(predictor.pair(key, train, f)).toEqual(figures);
    expect(before?.degradation).toBeGreaterThan(figures.degradation);
    expect(predictor.predict(place(train, f))).toMatchObject([figures, { degradation: ofF?.degradation }]);
    expect(predictor.drifts()).toMatchObject([{ victim: 'f', direction: 'worse' }]);
    expect(predictor.drifts()[0]?.meanMeasured).toBeCloseTo(2);
  });

  test('may leave sides without features to the default', () => {
    const predictor = new SmoreDegradation({ featureless: 'figures' }, withModels().state());
    expect(predictor.pair(key, train, member('x', 'function'))).toEqual({ degradation: 1, basis: 'default' });
    expect(predictor.pair(key, train, f).basis).toBe('measured');
  });

  test('predicts a member of the table again once its features are others', () => {
    const predictor = withModels();
    predictor.precompute(key, [train], [f]);
    const known = predictor.pair(key, train, f);
    const changed = member('f', 'function', 0.9);
    expect(predictor.pair(key, train, changed)).not.toEqual(known);
    expect(predictor.pair(key, train, changed)).toEqual(withModels().pair(key, train, changed));
    // Equal features are the same, whichever object holds them.
    expect(predictor.pair(key, train, member('f', 'function', 0.5))).toEqual(known);
  });
});

describe('a stored predictor', () => {
  const predictor = withModels();
  for (let i = 0; i < 15; i += 1) predictor.observe(place(train, f, g), [{ id: 'job', degradation: 2 }]);

  test('predicts and drifts as before', () => {
    const state = JSON.parse(JSON.stringify(predictor.state())) as ReturnType<typeof predictor.state>;
    const restored = new SmoreDegradation({}, state);
    expect(restored.predict(place(train, f, g), h)).toEqual(predictor.predict(place(train, f, g), h));
    expect(restored.drifts()).toEqual(predictor.drifts());
    expect(restored.state()).toEqual(state);
  });

  test('of another version is refused', () => {
    const state = { ...predictor.state(), formatVersion: 9 };
    expect(() => new SmoreDegradation({}, state)).toThrow(
      "version 9, cannot be read: 'gpuwhisk smore degradation', version 1",
    );
  });
});
