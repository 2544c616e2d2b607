import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import type { BenchContext } from '@gpuwhisk/bench/bench';
import { parseOptions } from '@gpuwhisk/bench/options';
import { verdicts } from '../experiments/verdicts.js';
import { verdictTable } from '../documents/verdict-tables.js';
import { workloadKey } from '../world/sets.js';
import { readMeasured } from '../world/sources.js';
import type { Measured } from '../world/sources.js';
import { planted, plantedContention, plantedFiles, plantedSlices, writeFiles } from '../world/testing/planted.js';
import type { Planted } from '../world/testing/planted.js';
import { drawFunctions, readDurations, type Durations } from './functions.js';
import { greatestLoad } from './greatest-load.js';
import { drawRequests, floodedBy } from './requests.js';
import { drawRun, firstVerdictSeed, runOnce } from './run.js';
import { readScenarios, type Scenario } from './scenario.js';
import { outcomeOf, verdictOf } from './verdict.js';
import { measuredWorld, type MeasuredWorld } from './worlds.js';
import '../baselines/register.js';

let folder: string;
let measured: Measured;
let kace: MeasuredWorld;
let slices: MeasuredWorld;
let durations: Durations;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-data-'));
  await writeFiles(folder, {
    ...{ ...plantedFiles(), ...plantedSlices() },
    'traces/azure2019_functions_day7.csv': [
      'function,avg_duration_ms,invocations',
      ...[60, 100, 500, 2000, 9000].map((ms, at) => `f${at},${ms},3`),
    ],
    'mig/migperf_a100_latency.csv': [
      'gpu,type,model,compute_slices,profile,batch,seq_len,latency_ms,latency_std_ms,graphics_active_mean,fb_used_mb',
      'A100-40GB,inference,m,7,40gb,1,64,10,0.2,0.1,1968.0',
    ],
    'traces/azure2021_invocations_sample.csv': [
      'start_s,duration_s,app,function',
      ...[1, 1.1, 1.2].map((seconds) => `0,${seconds},a,f`),
      '0,5,a,seldom',
    ],
  });
  measured = await readMeasured(folder, { licensed: false });
  kace = measuredWorld('kace-mps', measured, 0);
  slices = measuredWorld('parvagpu', measured, 0);
  durations = await readDurations(folder);
});
afterAll(() => rm(folder, { recursive: true }));

const [short, , , long] = planted as unknown as [Planted, Planted, Planted, Planted];
const keyOf = (source: string, { model }: Planted): string =>
  workloadKey({ source, model, variant: '', batch: 8, task: 'inference' });

const scenario: Scenario = {
  ...{ name: 'planted', about: '', world: 'kace-mps', licensed: 'parvagpu', metrics: ['late'] },
  ours: { name: 'faashare', policy: 'faashare' },
  rivals: [{ name: 'fcfs', policy: 'fcfs' }],
  ...{ gpus: 2, profiles: [], wholeGpus: 0, functions: 2, strictPart: 0.5, namespaces: 2, sloFactor: [2, 8] },
  ...{
    lengthMs: [50, 5000],
    trainings: 0,
    bound: 0.1,
    requests: 60,
    arrivals: 'poisson',
    loads: [0.9],
    greatestLoad: false,
  },
};

describe('the truth of a run', () => {
  /** Within what one measurement differs from its repetition, five times over. */
  const near = (expected: number) => ({ low: expected * 0.8, high: expected * 1.25 });

  test('a measured set has its measured slowdowns, in any order, up to the repeatability of its draw', () => {
    const truth = kace.truthOf('T1', 3, 'whole');
    const asked = [short, long].map((one) => ({ workload: keyOf('kace', one), share: 1 }));
    const [ofShort = NaN, ofLong = NaN] = truth.slowdowns(asked);
    for (const [found, expected] of [
      [ofShort, plantedContention(short, [long])],
      [ofLong, plantedContention(long, [short])],
    ] as const) {
      expect(found).toBeGreaterThan(near(expected).low);
      expect(found).toBeLessThan(near(expected).high);
    }
    expect([...truth.slowdowns([...asked].reverse())]).toEqual([ofLong, ofShort]);
    expect(truth.counts).toMatchObject({ asked: 4, extrapolated: 0, beyond: 0, partial: 0 });
    expect([...kace.truthOf('T1', 4, 'whole').slowdowns(asked)]).not.toEqual([ofShort, ofLong]);
  });

  test('in a set that is larger than any measured one groups take turns, and it is counted', () => {
    const truth = kace.truthOf('T1', 0, 'whole');
    const eight = planted.map((one) => ({ workload: keyOf('kace', one), share: 1 }));
    const four = truth.slowdowns(eight.slice(0, 4));
    const all = truth.slowdowns(eight);
    // Twice as many as a group has: each waits for as long as it runs.
    expect(all[0]).toBeGreaterThan(1.3 * (four[0] as number));
    expect(truth.counts).toMatchObject({ asked: 12, beyond: 8 });
    expect(truth.counts.extrapolated).toBeGreaterThanOrEqual(8);
  });

  test('quotas that overlap in part are counted, and cost more as the whole device than as disjoint ones', () => {
    const asked = [short, long].map((one) => ({ workload: keyOf('kace', one), share: 0.7 }));
    const [whole, disjoint] = (['whole', 'disjoint'] as const).map((bracket) => {
      const truth = kace.truthOf('T1', 0, bracket);
      const slowdowns = truth.slowdowns(asked);
      expect(truth.counts.partial).toBe(2);
      return slowdowns[0] as number;
    });
    expect(whole).toBeGreaterThan(disjoint as number);
  });

  test('a share below the least measured one stretches in proportion', () => {
    const truth = kace.truthOf('T1', 0, 'whole');
    const at = (share: number): number => truth.slowdowns([{ workload: keyOf('kace', short), share }])[0] as number;
    expect(at(0.125) / at(0.25)).toBeCloseTo(2, 6);
  });

  test('processes in a slice have its speed and its contention, and its memory is that of sets which fit', () => {
    const truth = slices.truthOf('T1', 0, 'whole');
    const asked = [short, short].map((one) => ({ workload: keyOf('parvagpu', one), share: 1 }));
    const kind = { gpuType: 'a100-80:3g.40gb', mode: 'mig' } as const;
    const [found = NaN] = truth.slowdowns(asked, kind);
    expect(found).toBeGreaterThan((7 / 3) * near(1.1).low);
    expect(found).toBeLessThan((7 / 3) * near(1.1).high);
    // Three fit into 1g.10gb, four do not: a quarter of the next slice is more than a third of it.
    for (const { memoryMiB } of slices.candidates) expect(memoryMiB).toBe(Math.floor((0.95 * 9728) / 3));
  });

  test('a world with too few workloads is refused with their number', () => {
    const few = { ...measured, alone: measured.alone.filter(({ source }) => source === 'kace').slice(0, 3) };
    expect(() => measuredWorld('kace-mps', few, 0)).toThrow('has 3 workloads that were measured beside others');
    expect(() => measuredWorld('gavel-v100', measured, 0)).toThrow('has 0 workloads');
  });
});

describe('what policies know', () => {
  test('a time alone is the median of past runs, not the length of a request, and others teach the predictors', () => {
    const truth = kace.truthOf('T1', 0, 'whole');
    const { functions, others } = drawFunctions(scenario, kace, durations, truth, seededRandom(1));
    expect(durations.spreads).toHaveLength(1);
    const jobs = drawRequests(scenario, functions, 0.01, 12, seededRandom(2));
    const told = new Set(jobs.map(({ task }) => task.soloMs));
    expect(told.size).toBeLessThanOrEqual(functions.length);
    const lengths = new Set(jobs.map(({ soloMs }) => soloMs));
    expect(lengths.size).toBe(jobs.length);
    expect([...lengths].some((length) => told.has(length))).toBe(false);
    const own = new Set(functions.map(({ candidate }) => candidate.workload));
    expect(others.length).toBeGreaterThanOrEqual(6);
    expect(others.some(({ workload }) => own.has(workload))).toBe(false);
  });

  test('a flood of one namespace comes within a tenth of the time, the others over all of it', () => {
    const truth = kace.truthOf('T1', 0, 'whole');
    const { functions } = drawFunctions(scenario, kace, durations, truth, seededRandom(1));
    const jobs = drawRequests({ ...scenario, arrivals: 'flood', requests: 400 }, functions, 1, 12, seededRandom(2));
    const spanOf = (isFlood: boolean): number => {
      const times = jobs.flatMap(({ task }) => ((task.namespace === floodedBy) === isFlood ? [task.arrivedAt] : []));
      return Math.max(...times) - Math.min(...times);
    };
    expect(spanOf(true) / spanOf(false)).toBeLessThan(0.12);
    expect(spanOf(true) / spanOf(false)).toBeGreaterThan(0.05);
  });
});

describe('a run', () => {
  const drawn = (form: 'T1' | 'T2' = 'T1') =>
    drawRun(scenario, kace, durations, { form, bracket: 'whole', seed: firstVerdictSeed });

  test('is the same for the same seed, and all requests end', () => {
    const [one, other] = [drawn(), drawn()].map((each) => runOnce(each, scenario.ours, 0.9));
    expect(one?.metrics).toEqual(other?.metrics);
    expect(one?.finishedAt).toHaveLength(scenario.requests);
  });

  test('under more load takes longer', () => {
    const each = drawn();
    const [light, heavy] = [0.2, 1.5].map(
      (load) => runOnce(each, { name: 'fcfs', policy: 'fcfs' }, load).metrics.timeMs,
    );
    expect(heavy).toBeGreaterThan(light as number);
  });

  test('of a policy that is given the truth is another one, and ends as well', () => {
    const each = drawn('T2');
    const { finishedAt } = runOnce(each, { ...scenario.ours, knowsTruth: true }, 0.9);
    expect(finishedAt).toHaveLength(scenario.requests);
  });
});

describe('a verdict', () => {
  const variants = (ours: number[], theirs: number[]) =>
    new Map(
      ['T1', 'T2'].map((form) => [
        form,
        new Map([
          ['ours', ours],
          ['theirs', theirs],
          ['bad', ours.map(() => 9)],
        ]),
      ]),
    );
  const seeds = Array.from({ length: 30 }, (_, at) => at % 3);

  test('is better or worse where the sign holds in every variant, else undecided', () => {
    const higher = seeds.map((value) => value + 2);
    expect(verdictOf('ours', ['bad', 'theirs'], variants(seeds, higher))).toMatchObject({
      outcome: 'better',
      rival: 'theirs',
    });
    expect(verdictOf('ours', ['theirs'], variants(higher, seeds))).toMatchObject({ outcome: 'worse' });
    const mixed = new Map(
      [...variants(seeds, higher)].map(([form, values]) => [
        form,
        form === 'T2' ? variants(higher, seeds).get(form) : values,
      ]),
    );
    expect(verdictOf('ours', ['theirs'], mixed as ReturnType<typeof variants>).outcome).toBe('undecided');
    expect(outcomeOf([{ low: -1, high: 0 }])).toBe('undecided');
  });

  test('without rivals, or of a contender without values, is refused', () => {
    expect(() => verdictOf('ours', [], variants(seeds, seeds))).toThrow('a verdict needs a rival');
    expect(() => verdictOf('ours', ['absent'], variants(seeds, seeds))).toThrow("lacks the values of 'absent'");
  });

  test('stands in the table with both truths', () => {
    const figures = ['T1', 'T2'].flatMap((form): [string, number][] => [
      [`lab.90.late.${form}.ours.auto`, 0.1],
      [`lab.90.late.${form}.theirs.fcfs`, 0.2],
      [`lab.90.late.${form}.difference.fcfs`, -0.1],
      [`lab.90.late.${form}.low.fcfs`, -0.15],
      [`lab.90.late.${form}.high.fcfs`, -0.05],
    ]);
    const table = verdictTable(Object.fromEntries([...figures, ['lab.90.late.extrapolated', 0.25]]), 'table');
    expect(table).toContain(
      '| lab | 90 % | late, of those with an SLO | `auto` | 10.0 % | 10.0 % | `fcfs` | 20.0 % | 20.0 % | -10.0 % (-15.0 % to -5.0 %) | -10.0 % (-15.0 % to -5.0 %) | better | 25 % |',
    );
  });
});

describe('the greatest load', () => {
  test.each([
    ['none', () => 0.06, 0],
    ['all', () => 0.05, 2],
    ['up to 1', (load: number) => (load > 1 ? 1 : 0), 1],
  ])('at which SLOs are kept is found: %s', (_, lateAt, expected) => {
    const found = greatestLoad(lateAt);
    expect(found).toBeLessThanOrEqual(expected);
    expect(found).toBeGreaterThan(expected - 0.06);
  });

  test('stands in its table, the greatest first', () => {
    const load = (policy: string, value: number): [string, number][] =>
      ['T1', 'T2'].map((form) => [`lab.greatestLoad.${form}.${policy}`, value]);
    const table = verdictTable(Object.fromEntries([...load('auto', 0.5), ...load('fcfs', 0.75)]), 'loads');
    expect(table.indexOf('| lab | `fcfs` | 75 % | 75 % |')).toBeGreaterThan(0);
    expect(table.indexOf('| lab | `auto` | 50 % | 50 % |')).toBeGreaterThan(table.indexOf('fcfs'));
  });
});

test('a quick run of a scenario prints its table, and its figures have the hash of the scenarios', async () => {
  const before = process.env.BENCH_DATA;
  process.env.BENCH_DATA = folder;
  try {
    const lines: string[] = [];
    const options = { ...parseOptions(['verdicts', '--quick']), parts: ['faashare-given-truth'] };
    const context = { options, say: (line: string) => void lines.push(line) } as unknown as BenchContext;
    const figures = new Map((await verdicts.run(context)).map(({ name, value }) => [name, value]));
    const { hash } = await readScenarios();
    expect(figures.get('scenarios.hash')).toBe(hash);
    expect(lines.join('\n')).toContain('licensed subset');
    const row = /\| faashare-given-truth \| 90 % \| late.*\| `faashare` \|.*\| (better|worse|undecided) \|/;
    expect(lines.at(-1)).toMatch(row);
    expect(lines.at(-1)).toContain('The greatest load was not looked for.');
  } finally {
    if (before === undefined) delete process.env.BENCH_DATA;
    else process.env.BENCH_DATA = before;
  }
});

describe('the committed scenarios', () => {
  test('name policies that there are, each with its settings and stages', async () => {
    const { scenarios } = await readScenarios();
    for (const { ours, rivals } of scenarios)
      for (const { policy } of [ours, ...rivals]) {
        expect(Object.keys(policies)).toContain(typeof policy === 'string' ? policy : policy.base);
        compositionOf(policy as Parameters<typeof compositionOf>[0]);
      }
  });

  test.each([
    ['{', 'has no valid scenarios'],
    ['[]', 'has no valid scenarios'],
    ['[{"name": "a"}]', 'about'],
  ])('that cannot be read are named: %s', async (text, why) => {
    const file = join(folder, 'scenarios.json');
    await writeFile(file, text);
    await expect(readScenarios(file)).rejects.toThrow(why);
    await expect(readScenarios(file)).rejects.toThrow(file);
  });

  test('two of one name are refused, and another text has another hash', async () => {
    const file = join(folder, 'scenarios.json');
    const one = { ...scenario, ours: 'faashare', rivals: ['fcfs'] };
    await writeFile(file, JSON.stringify([one, one]));
    await expect(readScenarios(file)).rejects.toThrow("names 'planted' twice");
    await writeFile(file, JSON.stringify([one]));
    const { hash } = await readScenarios(file);
    await writeFile(file, JSON.stringify([{ ...one, requests: 61 }]));
    expect((await readScenarios(file)).hash).not.toBe(hash);
  });
});
