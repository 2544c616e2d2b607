// The live proof in small: its workloads, its traces, and one that is played on a platform with simulated GPUs.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { newCleanup } from '../cleanup.js';
import { readStandInModel } from '../stand-in-model.js';
import { liveCatalogue, standInTruth } from './catalogue.js';
import { cpuRun, type CpuFunction } from './cpu-run.js';
import { expectLearnedUse, learnedUse, type PolicyState } from './learned.js';
import { comparison } from './live-figures.js';
import { liveRun, predict } from './live-run.js';
import type { LiveContext } from './platform.js';
import { expectInjected } from './player.js';
import { lengthOf, traceOf, type TraceSettings } from './trace.js';

const type = 'rtx3090';
const model = readStandInModel();
const catalogue = liveCatalogue(model, type);
const truth = standInTruth(model, type, catalogue);
const settings: TraceSettings = { jobs: 120, gpus: 4, load: 0.9, spanMs: 100_000 };

test('workloads take their time on the device, and training three times that of inference', () => {
  const unitMs = (name: string): number => catalogue.find((one) => one.name === name)?.unitMs ?? NaN;
  // It fills 108 SMs of an A100; of these it gets 82, each 0.3 times as fast.
  expect(unitMs('resnet50-16')).toBeCloseTo(((2.196 + 16 * 0.603) * 108) / 82 / 0.3, 6);
  expect(unitMs('resnet50-16-training')).toBeCloseTo(3 * unitMs('resnet50-16'), 6);
});

test('two that fill the device slow down alike, by what was measured; one that is held to a part is as much slower', () => {
  const client = { workload: 'resnet50-16', share: 1 };
  const [one = 0, other = 0] = truth.slowdowns([client, client]);
  expect(one).toBe(other);
  expect(one).toBeGreaterThan(1.6);
  expect(one).toBeLessThan(2);
  expect(truth.slowdowns([{ ...client, share: 0.5 }])[0]).toBe(2);
  expect(() => truth.slowdowns([{ workload: 'none', share: 1 }])).toThrow('none');
});

test('a trace has as many jobs with an SLO as without, as much work as was asked for, and is the same for a seed', () => {
  const works = [1, 2, 3, 4, 5, 6].map((seed) => {
    const jobs = traceOf(settings, catalogue, 400, seed);
    expect(jobs.filter(({ task }) => task.sloMs !== undefined)).toHaveLength(60);
    return jobs.reduce((sum, { soloMs }) => sum + soloMs, 0);
  });
  const mean = works.reduce((sum, work) => sum + work, 0) / works.length;
  expect(mean / (0.9 * 4 * 100_000)).toBeGreaterThan(0.8);
  expect(mean / (0.9 * 4 * 100_000)).toBeLessThan(1.2);
  expect(traceOf(settings, catalogue, 400, 1)).toEqual(traceOf(settings, catalogue, 400, 1));
});

test('the prediction is the same for a trace, and later where starts take longer', () => {
  const idle = [[], [], [], []];
  const beginning = { type, truth, policy: 'faashare', memoryMiB: 23_000, idle, warmMs: 10 };
  const jct = (startMs: number): number => predict(traceOf(settings, catalogue, startMs, 1), beginning).jctMs;
  expect(jct(400)).toBe(jct(400));
  expect(jct(400)).toBeGreaterThan(jct(10));
});

const noUse = { choices: 4, hits: 0.5, taken: 0, modelVersion: 1, modelSamples: 40, modelError: 0.1 };

test('the use of learned data counts what was chosen since, and the model that was in force before', () => {
  const state = (hit: number, version: number): PolicyState => ({
    shareChoices: { hit: { choices: hit, taken: 1 }, near: { choices: 1, taken: 0 }, miss: { choices: 2, taken: 0 } },
    sharedSets: 3,
    models: [{ version, sampleCount: 10 * version, error: version / 10 }],
  });
  const later = state(6, 2);
  later.shareChoices.miss.choices += 4;
  expect(learnedUse(state(2, 1), later)).toEqual({
    choices: 8,
    hits: 0.5,
    taken: 0,
    modelVersion: 1,
    modelSamples: 10,
    modelError: 0.2,
  });
});

test('traces without a trained model, hits or injected starts are refused', () => {
  expect(() => expectLearnedUse(noUse, 'trace')).not.toThrow();
  expect(() => expectLearnedUse({ ...noUse, modelVersion: 0 }, 'trace')).toThrow('was not trained');
  expect(() => expectLearnedUse({ ...noUse, hits: 0 }, 'trace')).toThrow('none of 4 choices');
  expect(() => expectInjected(['cold', 'injected'], 'trace')).not.toThrow();
  expect(() => expectInjected(['cold', 'warm', 'warm'], 'trace')).toThrow('1 cold, 0 prewarmed, 0 injected, 2 warm');
});

const problems: string[] = [];
const given = newCleanup((line) => problems.push(line));
let temporaryDir = '';
beforeAll(async () => {
  temporaryDir = await mkdtemp(join(tmpdir(), 'gpuwhisk-live-'));
  given.add('folder', () => rm(temporaryDir, { recursive: true, force: true }));
});
afterAll(async () => {
  await given.run();
  expect(problems).toEqual([]);
}, 60_000);
const context = (): LiveContext => ({ cleanup: given, temporaryDir, say: () => {} });

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: no trace is played.');
const onGpus = hasStandIn() && hasNative() ? test : test.skip;
const small = { jobs: 16, gpus: 2, load: 1.5, spanMs: 4000 };
const functions = ['resnet18-8', 'resnet18-8-training'];

onGpus(
  'a trace is played on the platform: all jobs end, some are injected, and both sides have figures',
  async () => {
    expect(lengthOf(small, catalogue)).toBeGreaterThanOrEqual(1);
    const settings = { name: 'small', type, policy: 'faashare', trace: small, seeds: [1], functions };
    const { traces, coldMs, warmMs } = await liveRun(context(), settings);
    expect(traces).toHaveLength(1);
    expect(coldMs).toBeGreaterThan(warmMs);
    for (const { jctMs, makespanMs, violations } of traces.flatMap(({ live, replay }) => [live, replay])) {
      expect(jctMs).toBeGreaterThan(0);
      expect(makespanMs).toBeGreaterThanOrEqual(jctMs);
      expect(violations).toBeLessThanOrEqual(1);
    }
    const figures = new Map(comparison(traces, '.small').map(({ name, value }) => [name, value]));
    const parts = ['Cold', 'Prewarmed', 'Injected', 'Warm'].map(
      (kind) => figures.get(`live${kind}Starts.small`) ?? NaN,
    );
    expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(1, 6);
    expect(figures.get('liveInjectedStarts.small')).toBeGreaterThan(0);
    expect(figures.get('liveInjectedStartMs.small')).toBeGreaterThan(0);
  },
  120_000,
);

onGpus(
  'a trace that was to be played on a trained platform fails if the platform has not learned',
  async () => {
    const training = { mostRounds: 1, searchesWithinMs: 0 };
    const trace = { ...small, jobs: 4, spanMs: 1000 };
    const settings = { name: 'raw', type, policy: 'faashare', trace, seeds: [1], functions, training };
    await expect(liveRun(context(), settings)).rejects.toThrow('raw, seed 1: the predictor in force was not trained');
  },
  120_000,
);

/** A function of the standard library, so that no package is fetched. */
const words: CpuFunction = {
  name: 'words',
  code: 'import re\ndef main(args):\n    return {"count": len(re.findall(r"\\w+", args["text"]))}\n',
  memoryMiB: 300,
  requirements: [],
  imports: ['json', 're'],
  input: { text: 'injected into a process' },
  check: ({ count }) => expect(count).toBe(4),
};

(hasNative() ? test : test.skip)(
  'a function without a GPU starts cold, injected and warm, and a wrong answer is refused',
  async () => {
    const measured = await cpuRun(context(), [words], { starts: 1, seconds: 0.2, callers: 2 });
    const figures = new Map(measured.map(({ name, value }) => [name, value]));
    const [coldMs = NaN, injectedMs = NaN] = ['Cold', 'Injected'].map((kind) => figures.get(`cpu${kind}StartMs.words`));
    expect(injectedMs).toBeLessThan(coldMs);
    expect(figures.get('cpuPerS.words')).toBeGreaterThan(1);
    const wrong = { ...words, input: { text: 'three more words' } };
    await expect(cpuRun(context(), [wrong], { starts: 1, seconds: 0.2, callers: 1 })).rejects.toThrow('Expected: 4');
  },
  120_000,
);
