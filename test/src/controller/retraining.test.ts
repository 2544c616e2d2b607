// Predictors that are retrained in the background.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configSchema } from '@gpuwhisk/common/config-schema';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import type { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { PerformanceViews } from '@gpuwhisk/controller/api/gpu-performance-views';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { Retraining } from '@gpuwhisk/controller/gpu/learning/retraining';
import { capacitySlowdown, faashareFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { trainAndJudge } from '@gpuwhisk/gpu/predict/train-worker';
import type { TrainingInput } from '@gpuwhisk/gpu/predict/train-worker';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const kind = { gpuType: 'a100-40', mode: 'mps' } as const;
const logger = createLogger({ level: 'silent' });

let clock: SimulatedClock;
let jobs: Jobs;
let performanceData: PerformanceData;
const models = (of = performanceData) => new PerformanceViews(of).models();
let retraining: Retraining;
/** Opens another controller on the same store. */
let openOther: () => Promise<{ performanceData: PerformanceData; retraining: Retraining }>;
let trained: TrainingInput[];
/** Changes the output of a training before the controller receives it. */
let tamper: (output: ReturnType<typeof trainAndJudge>) => ReturnType<typeof trainAndJudge>;

beforeEach(async () => {
  clock = new SimulatedClock();
  trained = [];
  tamper = (output) => output;
  const random = seededRandom(1);
  const store = simulatedStore({ clock, random, latencyMs: 1 });
  const options = configSchema.parse({}).gpu;
  const openLearned = (instance: number): Promise<PerformanceData> => {
    const metrics = createMetrics();
    return clock.runUntil(PerformanceData.open({ store, clock, random, logger, metrics, instance, options }));
  };
  performanceData = await openLearned(0);
  const disk = new SimulatedDisk(clock, random, 0);
  const leases = embeddedState(clock);
  ({ jobs } = await clock.runUntil(openEmbeddedJobs({ disk, folder: '/jobs', clock, random, leases, holder: 'c0' })));
  const run: typeof runInWorker = (_, input) => {
    trained.push(input as unknown as TrainingInput);
    return Promise.resolve({ ...tamper(trainAndJudge(input as unknown as TrainingInput)) } as JsonValue);
  };
  retraining = new Retraining({ performanceData, jobs, logger, run });
  retraining.open();
  openOther = async () => {
    const other = await openLearned(1);
    return { performanceData: other, retraining: new Retraining({ performanceData: other, jobs, logger, run }) };
  };
});
afterEach(() => clock.runUntil(jobs.close()));

/** A slowdown sample whose slowdown is `factor` times the one that capacity alone predicts. */
function sample(at: number, factor: number, share = 0.5): SlowdownSample {
  const part = (n: number): number => ((at * n) % 17) / 17;
  const one = { features: { smUtil: part(3), dramUtil: part(5), l2Util: part(7) }, share };
  const others = [{ features: { smUtil: part(11), dramUtil: part(13), l2Util: part(2) }, share: 0.5 }];
  return { one, others, slowdown: factor * capacitySlowdown(one, faashareFeatures(one, others)) };
}

async function measure(count: number, factor: number, from = 0, share?: number): Promise<void> {
  for (let at = from; at < from + count; at += 1) performanceData.runs.add(kind, sample(at, factor, share));
  await clock.runFor(1000);
}

const predicted = (): number => {
  const { one, others, slowdown } = sample(100, 1);
  return performanceData.predictors.predictor(kind).slowdown(one, others) / slowdown;
};

test('once 20 runs to learn from and 5 to judge by were measured a predictor is learned, and is in force', async () => {
  await measure(24, 1.5);
  expect([trained.length, predicted()]).toEqual([0, 1]);
  await measure(1, 1.5, 24);
  expect(trained).toHaveLength(1);
  expect(trained[0]).toMatchObject({ version: 1, training: { length: 20 }, heldOut: { length: 5 } });
  expect(models()).toEqual([{ ...kind, version: 1, sampleCount: 20, learnedAt: expect.any(Number) }]);
  expect(predicted()).toBeCloseTo(1.5, 1);
});

test('the next one comes after 20 more, and takes its place where it is no worse', async () => {
  await measure(25, 1.5);
  // At this share the slowdowns are larger.
  await measure(19, 2.5, 25, 0.1);
  expect([trained.length, models()]).toMatchObject([1, [{ version: 1 }]]);
  await measure(1, 2.5, 44, 0.1);
  expect(trained[1]).toMatchObject({ version: 2, inForce: expect.stringContaining('slowdown model') });
  expect(models()).toMatchObject([{ version: 2 }]);
});

test('a model that predicts worse is not taken, nor one that was damaged, nor one of something else', async () => {
  tamper = (output) => ({ ...output, miss: output.missInForce + 0.001 });
  await measure(25, 1.5);
  expect([trained.length, models()]).toEqual([1, []]);
  tamper = (output) => ({ ...output, model: output.model.replace('"sampleCount":', '"sampleCount":1') });
  await measure(25, 1.5, 25);
  // The job is attempted three times.
  await clock.runFor(60_000);
  expect([trained.length, models()]).toEqual([4, []]);
  expect(await jobs.failed()).toMatchObject([
    { kind: 'slowdown-model', attempts: 3, reason: expect.stringContaining('SHA') },
  ]);
  tamper = () => trainAndJudge({ ...trained[0]!, gpuType: 'h100' });
  await measure(1, 1.5, 50);
  await clock.runFor(60_000);
  expect([(await jobs.failed()).length, models()]).toEqual([2, []]);
  tamper = (output) => output;
  await measure(1, 1.5, 51);
  expect(models()).toMatchObject([{ version: 1 }]);
});

test('poisoned samples are refused before', async () => {
  for (let at = 0; at < 100; at += 1) expect(performanceData.runs.add(kind, sample(at, NaN))).toContain('NaN');
  await clock.runFor(1000);
  expect(trained).toEqual([]);
});

test('another controller that takes over has what was measured, and learns from it what was due', async () => {
  const other = await openOther();
  // The first controller closes before the job runs.
  await retraining.close();
  await measure(25, 1.5);
  expect([trained.length, models(other.performanceData)]).toEqual([0, []]);
  // By now the samples are written to the store.
  await clock.runFor(60_000);
  await clock.runUntil(other.performanceData.takeOver());
  other.retraining.open();
  await clock.runFor(1000);
  expect(trained).toHaveLength(1);
  expect(models(other.performanceData)).toMatchObject([{ version: 1, sampleCount: 20 }]);
  expect(models()).toEqual([]);
  await clock.runFor(60_000);
  await clock.runUntil(performanceData.takeOver());
  expect(models()).toMatchObject([{ version: 1 }]);
});
