import { describe, expect, test } from '@jest/globals';
import { seededRandom, randomFraction } from '@gpuwhisk/common/system/random';
import { knownKind, SliceSlowdowns } from './slowdowns.js';
import type { SliceSlowdownsState, TimedRun } from './slowdowns.js';

const [large, small] = [
  { gpuType: 'a100-40:4g.20gb', mode: 'mig' },
  { gpuType: 'a100-40:1g.5gb', mode: 'mig' },
] as const;
const task = (name: string, version = '1', arrivedAt = 0): TimedRun['task'] => ({ function: name, version, arrivedAt });
const beside = (...names: string[]): TimedRun['beside'] => names.map((name) => ({ task: task(name), part: 1 }));

/** Runs of functions with these requirements, alone and beside each other, with `noise` in their times. */
function learn(slowdowns: SliceSlowdowns, needs: Readonly<Record<string, number>>, runs: number, noise = 0): void {
  const random = seededRandom(4);
  const names = Object.keys(needs);
  for (const name of names) slowdowns.ran({ task: task(name), gpu: large, ranMs: 100, beside: [] });
  for (let run = 0; run < runs; run += 1) {
    const drawn = Array.from({ length: 2 + (random.uint32() % 2) }, () => names[random.uint32() % names.length]!);
    const sum = drawn.reduce((all, name) => all + needs[name]!, 0);
    const ranMs = 100 * Math.max(1, sum) * (1 + noise * (randomFraction(random) - 0.5));
    slowdowns.ran({ task: task(drawn[0]!), gpu: large, ranMs, beside: beside(...drawn.slice(1)) });
  }
}

describe('bandwidth requirements', () => {
  test('are found from co-located runs, on all slices of a type, and predict better than a constant', () => {
    const slowdowns = new SliceSlowdowns();
    const needs = { '/a/low': 0.3, '/a/middle': 0.7, '/a/high': 1.1 };
    learn(slowdowns, needs, 400, 0.05);
    const family = slowdowns.bandwidthsOn(small);
    expect(family?.isProven).toBe(true);
    for (const [name, need] of Object.entries(needs))
      expect(Math.abs((family?.of(name) ?? NaN) - need)).toBeLessThan(0.12);
    expect(slowdowns.bandwidthsOn({ gpuType: 'a100-40', mode: 'mps' })).toBeUndefined();
  });

  test('are not used where a constant predicts as well, as of slowdowns that neighbours do not decide', () => {
    const slowdowns = new SliceSlowdowns();
    const random = seededRandom(3);
    for (const name of ['/a/f', '/a/g']) slowdowns.ran({ task: task(name), gpu: large, ranMs: 100, beside: [] });
    for (let run = 0; run < 200; run += 1) {
      const others = Array.from({ length: 1 + (random.uint32() % 4) }, () => '/a/g');
      slowdowns.ran({ task: task('/a/f'), gpu: large, ranMs: 150 + (random.uint32() % 5), beside: beside(...others) });
    }
    const family = slowdowns.bandwidthsOn(large);
    expect([family?.isProven, family?.constant.toFixed(2)]).toEqual([false, '1.52']);
  });

  test('learn nothing from runs without a time alone, and from times that are none', () => {
    const slowdowns = new SliceSlowdowns();
    for (const ranMs of [NaN, -1, 0, Infinity]) slowdowns.ran({ task: task('/a/f'), gpu: large, ranMs, beside: [] });
    slowdowns.ran({ task: task('/a/f'), gpu: large, ranMs: 300, beside: beside('/a/g') });
    expect(slowdowns.bandwidthsOn(large)).toBeUndefined();
  });
});

test('times alone are those measured on a kind of place, else by its part of the SMs', () => {
  const slowdowns = new SliceSlowdowns();
  const kinds = [large, small].map(knownKind);
  const fill = { features: { smUtil: 0.5 } };
  const times = (figures: object): number[] => slowdowns.aloneOn({ function: '/a/f', ...figures }, kinds).times;
  expect(kinds.map(({ part }) => part)).toEqual([4 / 7, 1 / 7]);
  expect(times({ soloMs: 100, ...fill })).toEqual([100, 350]);
  expect(times({})).toEqual([7 / 4, 7]);
  slowdowns.ran({ task: task('/a/f'), gpu: large, ranMs: 120, beside: [] });
  expect(times(fill)).toEqual([120, 420]);
  slowdowns.ran({ task: task('/a/f'), gpu: small, ranMs: 200, beside: [] });
  expect(times({ soloMs: 7 })).toEqual([120, 200]);
});

test('a new version discards what was learned, and later ends of earlier versions add nothing', () => {
  const slowdowns = new SliceSlowdowns();
  slowdowns.ran({ task: task('/a/f', '1', 5), gpu: large, ranMs: 100, beside: [] });
  slowdowns.ran({ task: task('/a/f', '2', 9), gpu: large, ranMs: 30, beside: [] });
  slowdowns.ran({ task: task('/a/f', '1', 7), gpu: large, ranMs: 100, beside: [] });
  expect(slowdowns.expectedMs({ function: '/a/f' })).toBe(30);
});

test('the state is bounded, and predicts as before once it is read again', () => {
  const slowdowns = new SliceSlowdowns();
  const needs = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`/a/f${at}`, 0.2 + at / 40]));
  learn(slowdowns, needs, 500, 0.1);
  for (let at = 0; at < 1500; at += 1) slowdowns.ran({ task: task(`/b/${at}`), gpu: small, ranMs: 5, beside: [] });
  learn(slowdowns, needs, 500, 0.1);
  const text = JSON.stringify(slowdowns.state());
  const state = JSON.parse(text) as SliceSlowdownsState;
  expect(state.functions).toHaveLength(1000);
  const again = new SliceSlowdowns();
  again.restore(state);
  expect(JSON.stringify(again.state())).toBe(text);
  for (const name of Object.keys(needs)) {
    expect(again.bandwidthsOn(large)?.of(name)).toBe(slowdowns.bandwidthsOn(large)?.of(name));
  }
  expect(again.forget('/a/f1')).toBe(true);
  expect(() => again.restore({ ...state, format: 2 } as never)).toThrow('the format of slowdowns on slices is 2');
});
