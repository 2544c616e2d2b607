import { describe, expect, test } from '@jest/globals';
import { measuredTruth } from '../replay/truth.js';
import { sampleErrors } from './gpu-samples.js';
import type { ShareMode } from '@gpuwhisk/bench/gpu/machine';
import { planSamples } from '@gpuwhisk/bench/gpu/plan';
import type { Sample } from '@gpuwhisk/bench/gpu/sample-file';
import {
  contentionTable,
  degradationSets,
  sampleSets,
  slowdownRows,
  type SampleSet,
} from '@gpuwhisk/bench/gpu/samples';
import { mixOf } from '@gpuwhisk/bench/gpu/workloads';

const timesOf = (medianMs: number) => ({
  iterations: 10,
  medianMs,
  p95Ms: medianMs,
  p99Ms: medianMs,
  meanMs: medianMs,
  perS: 1000 / medianMs,
});

function sampleOf(id: string, mode: ShareMode, members: [string, number, number][], smActivity?: number): Sample {
  return {
    id,
    device: 'NVIDIA H100 (simulated)',
    mode,
    simulated: true,
    members: members.map(([workload, percent, medianMs]) => ({ workload, percent, ...timesOf(medianMs) })),
    activity: smActivity === undefined ? {} : { smActivity, dramActivity: smActivity / 2 },
  };
}

const [train, small, other] = ['train-bert:16', 'bert:1', 'resnet50:8'];
const solos = [
  sampleOf(`mps/${train}@100#0`, 'mps', [[train, 100, 100]], 0.8),
  sampleOf(`mps/${train}@50#0`, 'mps', [[train, 50, 150]], 0.5),
  sampleOf(`mps/${small}@100#0`, 'mps', [[small, 100, 2]], 0.1),
  sampleOf(`mps/${small}@50#0`, 'mps', [[small, 50, 2]], 0.1),
];
const pair: [string, number, number][] = [
  [train, 50, 180],
  [small, 50, 3],
];
const only = (samples: Sample[]): SampleSet => {
  const [set, ...more] = sampleSets(samples);
  expect(more).toEqual([]);
  return set as SampleSet;
};

describe('samples of a GPU', () => {
  test('make a set for each device and mode, without those that failed', () => {
    const sets = sampleSets([
      ...solos,
      sampleOf('timeslice/a', 'timeslice', [[small, 100, 2]]),
      { ...sampleOf('b', 'mps', []), failed: 'out of memory' },
      { ...sampleOf('c', 'mps', [[small, 100, 2]]), device: 'NVIDIA H200', simulated: false },
    ]);
    expect(sets.map(({ gpuType, mode, simulated, samples }) => [gpuType, mode, simulated, samples.length])).toEqual([
      ['nvidia-h100-simulated', 'mps', true, 4],
      ['nvidia-h100-simulated', 'timeslice', true, 1],
      ['nvidia-h200', 'mps', false, 1],
    ]);
  });

  test('give slowdowns against the whole device alone, with the activity alone as features', () => {
    const { rows, skipped } = slowdownRows(only([...solos, sampleOf('p', 'mps', pair)]));
    const training = { smUtil: 0.8, dramUtil: 0.4 };
    const inference = { smUtil: 0.1, dramUtil: 0.05 };
    expect(skipped).toBe(0);
    expect(rows.map(({ sample }) => sample)).toEqual([
      { one: { features: training, share: 0.5 }, others: [], slowdown: 1.5 },
      { one: { features: inference, share: 0.5 }, others: [], slowdown: 1 },
      {
        one: { features: training, share: 0.5 },
        others: [{ features: inference, share: 0.5 }],
        slowdown: 1.8,
      },
      { one: { features: inference, share: 0.5 }, others: [{ features: training, share: 0.5 }], slowdown: 1.5 },
    ]);
  });

  test('skip runs beside processes whose activity is not known', () => {
    const unknown = sampleOf(`mps/${other}@100#0`, 'mps', [[other, 100, 5]]);
    const set = only([
      ...solos,
      unknown,
      sampleOf('p', 'mps', [
        [small, 50, 3],
        [other, 100, 6],
      ]),
    ]);
    expect(slowdownRows(set)).toMatchObject({ skipped: 2, rows: { length: 2 } });
  });

  test('give degradations at the same share, pairs by kind, and sets of three and more', () => {
    const three = sampleOf('t', 'mps', [...pair, [small, 50, 4]]);
    const { pairs, places } = degradationSets(only([...solos, sampleOf('p', 'mps', pair), three]));
    expect(pairs.map(({ victim, neighbour, samples }) => [victim, neighbour, samples[0]?.degradation])).toEqual([
      ['workload', 'function', expect.closeTo(0.2)],
      ['function', 'workload', expect.closeTo(0.5)],
    ]);
    expect(pairs[0]?.samples[0]?.victim).toEqual({
      model: `${train}@50`,
      features: { share: 0.5, batch: 16, soloMs: 150, smUtil: 0.8, dramUtil: 0.4 },
    });
    expect(places).toHaveLength(1);
    expect(places[0]?.place.members.map(({ kind }) => kind)).toEqual(['workload', 'function', 'function']);
    expect(places[0]?.degradations.map(({ degradation }) => degradation)).toEqual([
      expect.closeTo(0.2),
      expect.closeTo(0.5),
      expect.closeTo(1),
    ]);
  });

  test('are the truth of a replay for the sets that were measured', () => {
    const again: [string, number, number][] = [
      [small, 50, 5],
      [train, 50, 200],
    ];
    const set = only([...solos, sampleOf('p#0', 'mps', pair, 0.9), sampleOf('p#1', 'mps', again, 0.7)]);
    expect(contentionTable(set).size).toBe(5);
    const truth = measuredTruth(set);
    const clients = [
      { workload: train, share: 0.5 },
      { workload: small, share: 0.5 },
    ];
    expect([...truth.slowdowns(clients)]).toEqual([expect.closeTo(1.9), expect.closeTo(2)]);
    expect([...truth.slowdowns([...clients].reverse())]).toEqual([expect.closeTo(2), expect.closeTo(1.9)]);
    expect(truth.used(clients)).toBeCloseTo(0.8);
    expect([...truth.slowdowns([{ workload: train, share: 0.5 }])]).toEqual([1.5]);
    expect([...truth.slowdowns([])]).toEqual([]);
    expect(() => truth.slowdowns([{ workload: small, share: 0.3 }])).toThrow(
      'bert:1@30 was not measured on nvidia-h100-simulated',
    );
  });
});

/** Samples of a plan whose times follow a rule: each neighbour takes as much as the activities of both multiply to. */
function plannedSamples(count: number): Sample[] {
  const mix = mixOf({ simulated: true, torch: false });
  const names = [...mix.trainings, ...mix.models.flat()];
  const activityOf = (workload: string): number => (1 + names.indexOf(workload)) / (1 + names.length);
  return planSamples(mix, { count, seed: 1, mps: true })
    .filter(({ mode }) => mode === 'mps')
    .map(({ id, mode, members }) => {
      const times = members.map(({ workload, percent }, i): [string, number, number] => {
        const around = members.reduce((sum, one, j) => (i === j ? sum : sum + activityOf(one.workload)), 0);
        const share = Math.max(1, activityOf(workload) / (percent / 100));
        return [workload, percent, 10 * share * (1 + 2 * activityOf(workload) * around)];
      });
      return sampleOf(id, mode, times, activityOf(members[0]?.workload ?? ''));
    });
}

test('predictors learn a rule from samples, better than the capacity model and the median', () => {
  const said: string[] = [];
  const found = sampleErrors(only(plannedSamples(240)), 1, (line) => said.push(line));
  const figures = new Map(found.map(({ name, value }) => [name, value]));
  const figure = (name: string): number => figures.get(`${name}.nvidia-h100-simulated.mps`) ?? NaN;
  expect(figure('predictorError')).toBeLessThan(0.5 * figure('predictorErrorCapacity'));
  expect(figure('predictorError')).toBeLessThan(0.5 * figure('predictorErrorMedian'));
  expect(figure('predictorRuns')).toBeGreaterThan(200);
  expect(figure('pairRmsle')).toBeLessThan(0.3);
  expect(figure('placeRmsle')).toBeGreaterThan(0);
  expect(said).toEqual([expect.stringContaining('0 without activity or slowdown')]);
});

test('too few samples are said, and give no figures', () => {
  const said: string[] = [];
  expect(sampleErrors(only(solos), 1, (line) => said.push(line))).toEqual([]);
  expect(said.join('\n')).toMatch(/fewer than 20 runs in a fold[^]*fewer than 20 pairs of a kind/);
});
