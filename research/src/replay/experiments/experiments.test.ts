import { seededRandom } from '@gpuwhisk/common/system/random';
import { describe, expect, test } from '@jest/globals';
import { prepare, overall, overheads, orders } from '../../experiments/faashare-parts.js';
import { idleSms } from '../../experiments/faashare-idle.js';
import { bestThatKeepsSlos, dominating } from '../../experiments/faashare-loads.js';
import { rules } from '../../experiments/faashare-rules.js';
import { waits } from '../../experiments/faashare-sensitivity.js';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { leastArea, saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { ModelParameters } from '@gpuwhisk/bench/replay/model/gpu-model';
import { latencySurface } from '../model/latency-surface.js';
import type { ReplayMetrics } from '@gpuwhisk/bench/replay/metrics';
import { learn, type Setting } from '../setting.js';
import { modelTruth, type MeasuredPair } from '../truth.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { measuredTogether } from '../workloads/measured.js';
import { timeOverShare } from '../workloads/surfaces.js';
import { leastOf, partOfOracle } from './bounded.js';
import { meanOf, runAll } from './compare.js';
import { searchAll } from './exploration.js';
import { allPolicies, closed, oursName, perturbed, rateBetween } from './scenarios.js';
import { barChart } from './tables.js';

const parameters: ModelParameters = {
  contention: { base: 0.05, perL2: 0.1, perDram: 0.2 },
  power: { idleW: 50, capW: 300, baseMhz: 1500, mhzPerW: 1 },
  noise: 0.01,
};

function entry(name: string, saturation: number, unitMs: number, memoryMiB: number): CatalogueEntry {
  const stretch = stretchTable((share) => Math.max(1, saturation / share));
  return {
    name,
    class: 'inference',
    batch: 8,
    unitMs,
    memoryMiB,
    model: { name, stretch, saturation: saturationOf(stretch), l2Util: 0.2, dramUtil: 0.2, powerW: 100 },
    sources: { unitMs: 'row', memoryMiB: invented, stretch: 'row', traffic: invented },
  };
}

/** A world of a few invented workloads. */
function synthetic(strict: readonly CatalogueEntry[], bestEffort: readonly CatalogueEntry[]): Setting {
  const catalogue = [...strict, ...bestEffort];
  return {
    name: 'synthetic',
    catalogue,
    strict,
    bestEffort,
    truths: [modelTruth(parameters, new Map(catalogue.map((one) => [one.name, one.model])))],
    cluster: { type: 'v100', mode: 'mps', memoryMiB: 16_000, perNode: 8 },
    budget: { runs: 60, mostTasks: 4 },
    quotaBudget: { sets: 3, mostTasks: 2 },
    leastWork: ({ model }) => leastArea(model.stretch),
    withCatalogue: synthetic,
  };
}

const setting = synthetic(
  [entry('small', 0.2, 10, 1000), entry('large', 1, 80, 3000)],
  [entry('train', 0.5, 50, 4000), entry('long', 0.9, 200, 6000)],
);

describe('the experiments, on a synthetic world', () => {
  const jobs = 30;
  const prepared = prepare(setting, 1, 1, () => undefined, jobs);

  test('all policies end all jobs, and ours has its figures', () => {
    const { measurements, figures, text } = overall(prepared, []);
    expect([...figures.keys()]).toEqual(['closed']);
    for (const of of figures.values()) {
      for (const ofPolicy of of.values()) {
        expect(ofPolicy).toHaveLength(1);
        for (const one of ofPolicy) {
          expect(one.jctMs).toBeGreaterThan(0);
          expect(one.stp).toBeLessThanOrEqual(1.1);
          expect(one.violations <= 1 && one.utilisation <= 1 && one.fragmentation <= 1).toBe(true);
        }
      }
    }
    expect(measurements.map(({ name }) => name)).toContain('synthetic.closed.makespanGain');
    expect(text.join('\n')).toContain(`| \`${oursName}\` |`);
    expect(text.join('\n')).toContain('| `small` to `long`, 4 | row | invented | row | invented |');
  });

  test('no job waits for longer than the stated bound under overload', () => {
    // Fewer jobs do not wait long enough.
    const many = { ...prepared, jobs: 80 };
    const found = new Map(waits(many, 4).measurements.map(({ name, value }) => [name, value]));
    expect(found.get('overload.overdue')).toBeGreaterThan(0);
    expect(found.get('overload.waitOverBound')).toBeLessThanOrEqual(1);
  });

  test('pairs that leave SMs idle: ours stays within a GPU, and baselines beyond are marked', () => {
    const pairs: Setting = { ...setting, memoryMiB: 8000, maxTotal: 100 };
    const { measurements, text } = idleSms(prepare(pairs, 1, 1, () => undefined, jobs));
    const found = new Map(measurements.map(({ name, value }) => [name, value]));
    expect(found.get('overfullIdle')).toBe(0);
    expect([...found.keys()]).toEqual(expect.arrayContaining(['makespanGainIdle', 'jctGainIdlePart']));
    expect(text.join('\n')).toMatch(/`mps-equal` \| [1-9][0-9.]* % \| extrapolated/);
  });

  test('each rule is switched off, and the decisions of ours are counted', () => {
    const { measurements, text } = rules(prepared);
    expect(measurements).toHaveLength(36);
    const gains = new Map(measurements.map(({ name, value }) => [name, value]));
    expect(gains.get('ruleJctGain.closed.alone')).not.toBe(0);
    expect(text.join('\n')).toMatch(/start \| alone \| [0-9.]+/);
  });

  test('orders and overheads', () => {
    expect(orders(prepared).measurements).toHaveLength(10);
    for (const { value } of overheads(prepared).measurements) expect(value).toBeGreaterThan(0);
  });
});

describe('comparisons', () => {
  const one = (jctMs: number, violations: number) => [{ jctMs, violations } as ReplayMetrics];

  test('the best baseline is the fastest of those that keep SLOs', () => {
    const figures = new Map([
      [oursName, one(10, 0.02)],
      ['fast', one(5, 0.3)],
      ['kept', one(9, 0.05)],
      ['slow', one(20, 0)],
    ]);
    expect(bestThatKeepsSlos(figures)).toBe('kept');
    expect(dominating(figures)).toEqual([]);
    expect(dominating(new Map([...figures, ['better', one(9, 0.01)]]))).toEqual(['better']);
    figures.delete('kept');
    figures.delete('slow');
    expect(bestThatKeepsSlos(figures)).toBe('fast');
  });

  test('where an oracle gains too little, all of it is had', () => {
    const gain = (mean: number) => ({ than: 'x', interval: { mean, low: mean, high: mean }, isBetter: undefined });
    expect(partOfOracle({ gain: gain(0.05), oracleGain: gain(0.1) })).toBeCloseTo(0.5, 9);
    expect(partOfOracle({ gain: gain(-0.2), oracleGain: gain(0.02) })).toBe(1);
  });

  test('the steady rate leaves start and drain out', () => {
    const ends = [...Array.from({ length: 100 }, (_, i) => 1000 + i), 5000, 9000];
    expect(rateBetween(ends, 0.1, 0.6)).toBeCloseTo(1, 9);
    expect(() => rateBetween([1, 1, 1], 0.1, 0.6)).toThrow('no time passes');
  });

  test('the bound of any schedule lies below all policies', () => {
    const scenario = closed(2, 20, 5);
    const known = learn(setting, 1);
    const least = leastOf(setting, known, scenario, 2);
    const figures = runAll(setting, known, scenario, allPolicies(), 2);
    for (const name of figures.keys()) {
      expect(meanOf(figures, name, 'makespanMs')).toBeGreaterThan(least.makespanMs);
      expect(meanOf(figures, name, 'jctMs')).toBeGreaterThan(least.jctMs);
    }
    expect(least.makespanMs).toBeGreaterThan(0);
  });
});

test('searches differ in nothing but ξ, and end within their measurements', () => {
  const shares = [10, 30, 50, 70, 90, 100];
  const surfaces = [0.3, 0.5, 0.7, 1].map((use, at) => ({
    model: `m${at}`,
    batch: 1,
    shares,
    slowdowns: shares.map((share) => Math.max(1, (100 * use) / share)),
  }));
  const none = { start: 0, decay: 1 };
  const one = searchAll(surfaces, 3, 4, none, 1);
  expect(searchAll(surfaces, 3, 4, none, 1)).toEqual(one);
  // This ξ demands more improvement than any point promises: one measurement, and the prior choice.
  const wary = searchAll(surfaces, 3, 4, { start: 1000, decay: 1 }, 1);
  expect(wary.evaluations).toEqual([1, 1, 1, 1]);
  expect(one.evaluations.every((count) => count > 1 && count <= 7)).toBe(true);
  for (const { regrets } of [one, wary]) expect(Math.min(...regrets)).toBeGreaterThanOrEqual(0);
});

test('only what is invented is perturbed', () => {
  const one = randomItem(setting.strict, seededRandom(1));
  const other = perturbed(one, 1.3, 16_000);
  expect(other.memoryMiB).toBe(1300);
  expect(other.unitMs).toBe(one.unitMs);
  expect(other.model.stretch).toEqual(one.model.stretch);
  expect(other.model.dramUtil).toBeCloseTo(0.26, 9);
  expect(perturbed(one, 30, 16_000).memoryMiB).toBe(16_000);
});

test('a batch beyond those measured behaves as a smaller one at a smaller share', () => {
  const points = [0.1, 0.5, 1].map((share) => ({ batch: 8, share, latencyMs: 1 / share }));
  const surface = latencySurface([...points, ...points.map((point) => ({ ...point, batch: 1, latencyMs: 1 }))]);
  const time = timeOverShare(surface, 16);
  expect(time(1)).toBeCloseTo(2, 9);
  expect(time(0.1)).toBeCloseTo(20, 9);
});

test('workloads that were all measured together, and with themselves', () => {
  const pair = (a: string, b: string): MeasuredPair => ({ a, b, slowdownA: 1, slowdownB: 1 });
  const all = ['a', 'b', 'c'].flatMap((one, i, names) => names.slice(i).map((other) => pair(one, other)));
  expect(measuredTogether([...all, pair('a', 'd'), pair('b', 'd'), pair('c', 'd')]).sort()).toEqual(['a', 'b', 'c']);
  expect(() => measuredTogether([pair('a', 'b')])).toThrow('Fewer than three');
});

test('a chart has a bar and a label for each', () => {
  const svg = barChart('a < b', [{ name: 'one', value: 1, low: 0.5, high: 2 }], String);
  expect(svg).toContain('a &lt; b');
  expect(svg.match(/<rect/g)).toHaveLength(2);
});
