// The live proof in small: its workloads, its traces, and one that is played on a platform with simulated GPUs.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { newCleanup } from '../cleanup.js';
import { readStandInModel } from '../stand-in-model.js';
import { liveCatalogue, standInTruth } from './catalogue.js';
import { liveRun, predict } from './live-run.js';
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

test('two that fill the device take turns; one that is held to a part is as much slower', () => {
  const client = { workload: 'resnet50-16', share: 1 };
  expect([...truth.slowdowns([client, client])]).toEqual([2, 2]);
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
  const beginning = { type, memoryMiB: 23_000, idle: [[], [], [], []], warmMs: 10 };
  const jct = (startMs: number): number =>
    predict(traceOf(settings, catalogue, startMs, 1), truth, 'faashare', beginning).jctMs;
  expect(jct(400)).toBe(jct(400));
  expect(jct(400)).toBeGreaterThan(jct(10));
});

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: no trace is played.');

(hasStandIn() ? test : test.skip)(
  'a trace is played on the platform: all jobs end, and both sides have figures',
  async () => {
    const problems: string[] = [];
    const cleanup = newCleanup((line) => problems.push(line));
    const temporaryDir = await mkdtemp(join(tmpdir(), 'gpuwhisk-live-'));
    cleanup.add('folder', () => rm(temporaryDir, { recursive: true, force: true }));
    const small = { jobs: 6, gpus: 2, load: 0.9, spanMs: 4000 };
    expect(lengthOf(small, catalogue)).toBeGreaterThanOrEqual(1);
    try {
      const { traces, coldMs } = await liveRun({ cleanup, temporaryDir, say: () => {} }, type, 'faashare', small, [1]);
      expect(traces).toHaveLength(1);
      expect(coldMs).toBeGreaterThan(0);
      for (const { jctMs, makespanMs, violations } of traces.flatMap(({ live, replay }) => [live, replay])) {
        expect(jctMs).toBeGreaterThan(0);
        expect(makespanMs).toBeGreaterThanOrEqual(jctMs);
        expect(violations).toBeLessThanOrEqual(1);
      }
    } finally {
      await cleanup.run();
    }
    expect(problems).toEqual([]);
  },
  120_000,
);
