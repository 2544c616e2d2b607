import { seededRandom } from '@gpuwhisk/common/system/random';
import { describe, expect, test } from '@jest/globals';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { drawEntry } from '@gpuwhisk/bench/replay/jobs';
import { LearningTable, soonestQuotas } from './recurring.js';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

const entry = (name: string): CatalogueEntry => {
  const stretch = stretchTable((share) => Math.max(1, 0.6 / share));
  return {
    name,
    class: 'inference',
    batch: 1,
    unitMs: 10,
    memoryMiB: 1000,
    model: { name, stretch, saturation: saturationOf(stretch), l2Util: 0.2, dramUtil: 0.2, powerW: 100 },
    sources: { unitMs: 'row', memoryMiB: invented, stretch: 'row', traffic: invented },
  };
};
const catalogue = [entry('a'), entry('b')];
/** Each is slowed down by the share of the others. */
const truth: GpuTruth = {
  noise: 0,
  used: () => 1,
  slowdowns: (clients) =>
    Float64Array.from(clients, (one) =>
      clients.reduce((sum, other) => sum + (other === one ? 0 : other.share), one.share < 0.5 ? 2 : 1),
    ),
};
const predictor = { slowdown: () => 1 };
const set = ['a', 'b'].map((name) => ({ function: `/guest/${name}`, version: '1', batch: 1, soloMs: 100 }));
const none = [Infinity, Infinity];

test('workloads are drawn as often as their weights say', () => {
  const random = seededRandom(1);
  const weights = new Map([
    ['a', 9],
    ['b', 1],
  ]);
  const drawn = Array.from({ length: 1000 }, () => drawEntry(catalogue, weights, random).name);
  expect(drawn.filter((name) => name === 'a').length / 1000).toBeCloseTo(0.9, 1);
  expect(drawEntry(catalogue, new Map([['b', 1]]), random).name).toBe('b');
  expect(() => drawEntry([], weights, random)).toThrow(RangeError);
});

describe('a table that learns', () => {
  const quotas = new QuotaTable({ predictorOf: () => predictor });
  const make = (): LearningTable =>
    new LearningTable({ known: { predictor, quotas }, truth, catalogue, random: seededRandom(1) });
  const runOf = (name: string, other: string, ranMs: number, part: number): ObservedRun => {
    const task = (of: string) => profiledTask(of, 100, 0.6, { function: `/guest/${of}` });
    const beside = [{ task: task(other), share: 0.7, part }];
    return { task: task(name), gpu: { id: 'g', gpuType: 't', mode: 'mps' }, share: 0.7, ranMs, beside };
  };

  test('knows a set once each of its members had the other beside it all the time', () => {
    const learned = (part: number): unknown => {
      const table = make();
      table.ran(runOf('a', 'b', 150, part));
      expect(table.slowdownsAt(set, { gpuType: 't', mode: 'mps' }, [0.7, 0.7])).toBeUndefined();
      table.ran(runOf('b', 'a', 120, part));
      return table.slowdownsAt(set, { gpuType: 't', mode: 'mps' }, [0.7, 0.7]);
    };
    expect(learned(0.95)).toEqual([1.5, 1.2]);
    expect(learned(0.6)).toBeUndefined();
  });

  test('searches a set that is met three times, and leaves the table that it was made from as it was', () => {
    const table = make();
    const sources = [1, 2, 3, 4].map(() => table.shareFor(set, { gpuType: 't', mode: 'mps' }, none).source);
    expect(sources).toEqual(['guardrail', 'guardrail', 'guardrail', 'hit']);
    expect(quotas.size).toBe(0);
  });
});

test('the best shares by the truth end jobs soonest, keep budgets and fixed shares', () => {
  const oracle = soonestQuotas(truth);
  const find = (budgets: number[], fixed: (number | undefined)[] = []): unknown => {
    const { shares, source, slowdowns } = oracle.shareFor(
      set,
      { gpuType: 't', mode: 'mps' },
      budgets,
      fixed,
      [100, 100],
    );
    return [shares, source, slowdowns];
  };
  expect(find(none)).toEqual([[0.5, 0.5], 'hit', [1.5, 1.5]]);
  expect(find(none, [0.7])).toEqual([[0.7, 0.5], 'hit', [1.5, 1.7]]);
  expect(find([115, Infinity])).toEqual([[0.5, 0.1], 'hit', [1.1, 2.5]]);
  expect(find([90, Infinity])).toMatchObject([[1, 1], 'guardrail']);
  expect(oracle.slowdownsAt(set, { gpuType: 't', mode: 'mps' }, [0.5, 1])).toEqual([2, 1.5]);
});
