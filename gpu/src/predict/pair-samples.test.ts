import { describe, expect, test } from '@jest/globals';
import { learnable, PairSamples } from './pair-samples.js';
import type { MeasuredPair, MeasuredSide } from './pair-samples.js';

const minuteMs = 60_000;
const side = (name: string, changes: Partial<MeasuredSide> = {}): MeasuredSide => {
  return { name, version: '0.0.1', share: 1, features: { smUtil: 0.5 }, ...changes };
};
const pair = (degradation: number, at: number, changes: Partial<MeasuredPair> = {}): MeasuredPair => {
  return { victim: side('/a/f'), neighbour: side('/a/g'), degradation, at, from: 'run', ...changes };
};

test('a pair has the median of its last eight measurements, the figures of the last one, and its shares among them', () => {
  const samples = new PairSamples();
  for (let at = 0; at < 4; at += 1) samples.add(pair(9, at * minuteMs));
  for (let at = 4; at < 12; at += 1) samples.add(pair(at % 2 === 0 ? 0.2 : 0.4, at * minuteMs));
  const later = { victim: side('/a/f', { features: { smUtil: 0.6, soloMs: 12 } }) };
  samples.add(pair(0.2, 20 * minuteMs, later));
  expect([samples.size, samples.measurements]).toEqual([1, 8]);
  expect(samples.samples()).toEqual([
    {
      victim: { model: '/a/f', features: { smUtil: 0.6, soloMs: 12, share: 1 } },
      neighbour: { model: '/a/g', features: { smUtil: 0.5, share: 1 } },
      degradation: expect.closeTo(0.3),
    },
  ]);
});

test('a direction, a version and a share are pairs of their own', () => {
  const samples = new PairSamples();
  samples.add(pair(0.1, 0));
  samples.add(pair(0.1, 0, { victim: side('/a/g'), neighbour: side('/a/f') }));
  samples.add(pair(0.1, 0, { victim: side('/a/f', { version: '0.0.2' }) }));
  samples.add(pair(0.1, 0, { victim: side('/a/f', { share: 0.5 }) }));
  expect([samples.size, samples.fresh]).toEqual([4, 4]);
  expect(samples.has(side('/a/f'), side('/a/g'))).toBe(true);
  expect(samples.has(side('/a/f'), side('/a/f'))).toBe(false);
  expect(samples.forget('/a/f')).toBe(true);
  expect([samples.size, samples.forget('/a/f')]).toEqual([0, false]);
});

test('what a workload reports each second counts once a minute', () => {
  const samples = new PairSamples();
  const taken = Array.from({ length: 130 }, (_, second) => samples.add(pair(0.1, second * 1000)).isTaken);
  expect(taken.filter(Boolean)).toHaveLength(3);
});

describe('a measurement is refused', () => {
  test.each<[string, MeasuredPair, string]>([
    ['NaN', pair(NaN, 0), 'NaN'],
    ['far below 0', pair(-0.7, 0), '-0.7'],
    ['absurdly great', pair(1e6, 0), '1000000'],
    ['without a time', pair(0.1, NaN), 'a time of NaN'],
    ['a share of 0', pair(0.1, 0, { victim: side('/a/f', { share: 0 }) }), 'a share of 0'],
    ['no figures', pair(0.1, 0, { victim: side('w', { features: {} }) }), 'no set of figures in common'],
    ['absurd figures', pair(0.1, 0, { victim: side('w', { features: { smUtil: 40, soloMs: -1 } }) }), 'in common'],
    [
      'figures of different kinds',
      pair(0.1, 0, { victim: side('w', { features: { flops: 1e9, params: 1e6 } }) }),
      'no set of figures in common',
    ],
  ])('%s', (_, measured, reason) => {
    const samples = new PairSamples();
    const { isTaken, refused } = samples.add(measured);
    expect([isTaken, samples.size, samples.isChanged]).toEqual([false, 0, false]);
    expect(refused).toContain(reason);
  });

  test('single absurd figures are left out', () => {
    const samples = new PairSamples();
    samples.add(
      pair(-0.1, 0, { victim: side('/a/f', { features: { smUtil: 0.5, batch: NaN, memoryMiB: -1, odd: 1 } }) }),
    );
    expect(samples.samples()[0]).toMatchObject({ victim: { features: { smUtil: 0.5, share: 1 } }, degradation: -0.1 });
  });
});

test('of too many pairs those measured least recently are forgotten', () => {
  const samples = new PairSamples();
  for (let at = 0; at < 510; at += 1) samples.add(pair(0.1, at, { victim: side(`/a/f${at}`) }));
  expect([samples.size, samples.fresh]).toEqual([500, 500]);
  expect(samples.has(side('/a/f9'), side('/a/g'))).toBe(false);
  expect(samples.has(side('/a/f10'), side('/a/g'))).toBe(true);
});

test('what is new since a training is counted, and stored with the pairs', () => {
  const samples = new PairSamples();
  samples.add(pair(0.1, 0));
  const { fresh } = samples;
  samples.add(pair(0.1, 0, { victim: side('/a/h') }));
  samples.trained(fresh);
  const copy = new PairSamples(JSON.parse(JSON.stringify(samples.state())) as ReturnType<PairSamples['state']>);
  expect([copy.size, copy.fresh, copy.isChanged]).toEqual([2, 1, true]);
  expect(copy.samples()).toEqual(samples.samples());
  copy.trained(1);
  expect([copy.fresh, copy.isChanged]).toEqual([0, false]);
  copy.add(pair(0.2, minuteMs));
  expect([copy.fresh, copy.isChanged]).toEqual([0, true]);
  // Newer measurements of another set are added, older ones are known.
  copy.addAll(samples.state());
  expect(copy.measurements).toBe(3);
  expect(() => new PairSamples({ ...samples.state(), version: 2 as 1 })).toThrow('version 2');
});

test('samples count by the set of features that most of them have on both sides', () => {
  const of = (one: Record<string, number>, other: Record<string, number>) => {
    return { victim: { model: 'v', features: one }, neighbour: { model: 'n', features: other }, degradation: 0 };
  };
  const [figures, model] = [{ smUtil: 0.5 }, { flops: 1e9, params: 1e6 }];
  expect(learnable([])).toBe(0);
  expect(learnable([of(figures, figures), of(model, model), of(figures, model)])).toBe(1);
  expect(learnable([of(figures, figures), of({ ...model, ...figures }, { ...model, ...figures })])).toBe(2);
});
