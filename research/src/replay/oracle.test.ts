import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { alike } from '@gpuwhisk/bench/replay/alike';
import { replay } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { within } from '@gpuwhisk/bench/replay/jobs';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import { oracleOf } from './oracle.js';
import { counting } from './overfull.js';
import { pairOracle } from './pair-oracle.js';
import { measuredFeatures } from './profiling.js';
import { named, trueLengths } from './setting.js';
import { startOf } from './starts.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { viewOf } from '@gpuwhisk/gpu/testing/views';

const parts = { unitMs: invented, memoryMiB: invented, stretch: invented, traffic: invented };

function entry(name: string, saturation: number): CatalogueEntry {
  const stretch = stretchTable((share) => Math.max(1, saturation / share));
  const model = { name, stretch, saturation: saturationOf(stretch), l2Util: 0.3, dramUtil: 0.3, powerW: 100 };
  return { name, class: 'inference', batch: 1, unitMs: 10, memoryMiB: 1000, model, sources: parts };
}

/** `a` needs 70 % of the SMs and `b` 30 %; both slow down where they get less, and where more than all is wanted. */
const needs = new Map([
  ['a', 0.7],
  ['b', 0.3],
]);
const truth: GpuTruth = {
  noise: 0.2,
  slowdowns: (clients) => {
    const wanted = clients.map(({ workload, share }) => Math.min(share, needs.get(workload) ?? 1));
    const over = Math.max(
      1,
      wanted.reduce((sum, one) => sum + one, 0),
    );
    return Float64Array.from(clients, ({ workload }, at) => (over * (needs.get(workload) ?? 1)) / (wanted[at] ?? 1));
  },
  used: () => 1,
};
const catalogue = [entry('a', 0.7), entry('b', 0.3)];
const jobOf = (name: string) => ({ function: `/guest/${name}`, version: '0.0.1', batch: 1, soloMs: 100 });

test('the oracle predicts the truth, also of entries with equal features', () => {
  const twins = [entry('a', 0.5), entry('b', 0.5)];
  const { profiles, predictor } = oracleOf(twins, truth);
  const at = (name: string, share: number) => ({ features: profiles.get(name)!.features, share });
  expect(predictor.slowdown(at('a', 0.35), [])).toBeCloseTo(2, 9);
  expect(predictor.slowdown(at('b', 0.15), [at('a', 0.7)])).toBeCloseTo(2, 9);
  expect(() => predictor.slowdown({ features: { smUtil: 0.1 }, share: 1 }, [])).toThrow('no workload');
});

test('the oracle gives the best shares, within its total and around those that are fixed', () => {
  const free = oracleOf(catalogue, truth).quotas;
  const set = [jobOf('a'), jobOf('b')];
  expect(free.shareFor(set, { gpuType: 't', mode: 'mps' }, [Infinity, Infinity]).shares).toEqual([0.7, 0.3]);
  const fixed = free.shareFor(set, { gpuType: 't', mode: 'mps' }, [Infinity, 100], [0.1, undefined]);
  expect([fixed.shares[0], fixed.unmet]).toEqual([0.1, []]);
  const narrow = oracleOf(catalogue, truth, 60).quotas.shareFor(set, { gpuType: 't', mode: 'mps' }, [Infinity, 110]);
  // 30 % for b meets its budget; a gets what the total leaves.
  expect(narrow).toMatchObject({ shares: [0.3, 0.3], source: 'hit', unmet: [] });
  expect(free.slowdownsAt(set, { gpuType: 't', mode: 'mps' }, [0.3, 0.3])).toEqual(narrow.slowdowns);
  const four = free.shareFor([...set, ...set], { gpuType: 't', mode: 'mps' }, [Infinity, Infinity, Infinity, Infinity]);
  expect(four.shares).toHaveLength(4);
});

test('a set that the truth does not know is never chosen by the oracle', () => {
  const pairsOnly: GpuTruth = {
    ...truth,
    slowdowns: (clients) => {
      if (clients.length > 1) throw new RangeError('not measured');
      return Float64Array.of(1);
    },
  };
  const { profiles, predictor } = oracleOf(catalogue, pairsOnly);
  const [one, other] = ['a', 'b'].map((name) => ({ features: profiles.get(name)!.features, share: 1 }));
  expect(predictor.slowdown(one!, [other!])).toBe(1000);
});

test('true lengths are those that the replay gives the jobs', () => {
  const jobs = [0, 50, 10].map((arrivedAt, i) => ({
    ...{ workload: 'a', soloMs: 100, startMs: 0 },
    task: {
      ...{ id: `t${i}`, function: '/guest/a', version: '0.0.1', namespace: 'guest', batch: 1, gpus: 1 },
      ...{ memoryMiB: 10, soloMs: 100, arrivedAt, class: 'inference' as const },
    },
  }));
  const exclusive = named('exclusive')(
    { predictorOf: () => ({ slowdown: () => 1 }), random: seededRandom(1), admission: 'best-effort' },
    { gpus: 3, jobs: 3, length: 1, startMs: 0, sloFactor: 4 },
  );
  const cluster = alike({ gpus: 3, type: 't', mode: 'mps', memoryMiB: 100, perNode: 8 });
  const run = replay(jobs, cluster, truth, exclusive, seededRandom(9));
  const lengths = trueLengths({ jobs, seed: 9 }, truth.noise);
  for (const { job, startedAt, finishedAt } of run.finished) {
    expect(finishedAt - startedAt).toBeCloseTo(lengths.get(job.task.id) ?? NaN, 6);
  }
  expect(new Set(lengths.values()).size).toBe(3);
});

test('the oracle of pairs gives the head of the order the partner and the shares with most work', () => {
  const { profiles, predictor } = oracleOf(catalogue, truth);
  const task = (id: string, name: string, soloMs: number) => ({
    ...{ id, function: `/guest/${name}`, version: '0.0.1', namespace: 'guest', batch: 1, gpus: 1, memoryMiB: 10 },
    ...{ soloMs, features: profiles.get(name)!.features, arrivedAt: 0, class: 'inference' as const },
  });
  const gpu = (id: string, running: { task: ReturnType<typeof task>; share: number; startedAt: number }[] = []) => ({
    ...{ id, node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 100, running },
  });
  const needed = { predictorOf: () => predictor, random: seededRandom(1), admission: 'best-effort' as const };
  const policy = pairOracle('longest')(needed, { gpus: 2, jobs: 4, length: 1, startMs: 0, sloFactor: 4 });
  expect(policy.name).toBe('pairs, longest first');
  const waiting = [task('small', 'b', 10), task('wide', 'a', 90), task('other', 'a', 80)];
  const starts = (gpus: ReturnType<typeof gpu>[], tasks: typeof waiting) =>
    policy
      .decide(viewOf({ gpus, waiting: tasks }), { kind: 'timer' })
      .starts.map((one) => [one.task, one.gpu, one.share]);
  // Two of 70 % gain less together than one beside 30 %.
  expect(starts([gpu('g')], waiting)).toEqual([
    ['wide', 'g', 0.7],
    ['small', 'g', 0.3],
  ]);
  expect(starts([gpu('g', [{ task: waiting[1]!, share: 0.7, startedAt: 0 }])], [waiting[0]!])).toEqual([
    ['small', 'g', 0.3],
  ]);
  expect(starts([gpu('g')], [waiting[2]!])).toEqual([['other', 'g', 1]]);
});

test('features are measured with noise and stay fractions', () => {
  const one = entry('a', 1);
  const all = Array.from({ length: 200 }, (_, seed) => measuredFeatures(one, 0.1, seededRandom(seed + 1)));
  expect(Math.max(...all.map(({ smUtil }) => smUtil))).toBe(1);
  const logs = all.map(({ dramUtil = 0 }) => Math.log(dramUtil / 0.3));
  const deviation = Math.sqrt(logs.reduce((sum, log) => sum + log * log, 0) / logs.length);
  expect(deviation).toBeGreaterThan(0.08);
  expect(deviation).toBeLessThan(0.12);
  expect(measuredFeatures(one, 0, seededRandom(1))).toEqual({
    smUtil: one.model.saturation,
    dramUtil: 0.3,
    l2Util: 0.3,
  });
});

test('sets that want more than a GPU are counted, by what they can use', () => {
  const counts = { sets: 0, overfull: 0 };
  const counted = counting(truth, catalogue, counts);
  const at = (workload: string, share: number) => ({ workload, share });
  counted.slowdowns([at('a', 1)]);
  counted.slowdowns([at('a', 1), at('b', 1)]);
  counted.slowdowns([at('a', 1), at('a', 0.5)]);
  expect(counts).toEqual({ sets: 2, overfull: 1 });
});

test('draws are repeated until they are within the bounds', () => {
  const draw = within((random) => randomFraction(random) * 10, 2, 3);
  const random = seededRandom(1);
  const all = Array.from({ length: 100 }, () => draw(random));
  expect(Math.min(...all) >= 2 && Math.max(...all) <= 3).toBe(true);
  expect(() => within(() => 1, 2, 3)(random)).toThrow('no value between 2 and 3');
});

test('ours starts by injection, all others as an unoptimised platform', () => {
  expect(startOf('faashare').coldMs).toBe(12);
  for (const name of ['exclusive', 'tgs', 'fcfs', 'longest-first']) expect(startOf(name).coldMs).toBe(1800);
});
