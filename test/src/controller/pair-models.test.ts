// Models of the degradation of pairs: trained in the background, used where they err less than figures, kept over restarts.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { configSchema } from '@gpuwhisk/common/config-schema';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import type { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { PairTraining } from '@gpuwhisk/controller/gpu/learning/pair-training';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { encodeDocument } from '@gpuwhisk/controller/gpu/learning/performance-store';
import type { DocumentKind } from '@gpuwhisk/controller/gpu/learning/performance-store';
import type { SetMember } from '@gpuwhisk/gpu/predict/degradation';
import { trainPairModel } from '@gpuwhisk/gpu/predict/pair-degradation';
import { encodePairModel } from '@gpuwhisk/gpu/predict/pair-model-codec';
import { trainAndJudgePairs } from '@gpuwhisk/gpu/predict/pair-training';
import type { PairErrors, PairTrainingInput, PairTrainingOutput } from '@gpuwhisk/gpu/predict/pair-training';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const key = { gpuType: 'a100-40', mode: 'mps', victim: 'function', neighbour: 'function' } as const;
const gpu = { gpuType: 'a100-40', mode: 'mps' } as const;
const logger = createLogger({ level: 'silent' });
const dayMs = 24 * 3_600_000;

let clock: SimulatedClock;
let store: ArtifactStore;
let jobs: Jobs;
let data: PerformanceData;
let inputs: PairTrainingInput[];
/** Changes the output of a training before the controller receives it. */
let tamper: (output: PairTrainingOutput) => PairTrainingOutput;
let openData: () => Promise<PerformanceData>;
let open: () => Promise<void>;

/** Trains in a fraction of the time, and says that figures err more. */
function trainFast(input: PairTrainingInput): PairTrainingOutput {
  const { version, seed, samples } = input;
  const [small, great] = [0.1, 0.2].map((error) => ({ rmsle: error, mae: error })) as [PairErrors, PairErrors];
  return {
    model: encodePairModel(trainPairModel(input, samples, { version, seed, kinds: ['ridge'] })),
    judgement: { judged: samples.length, model: small, figures: great, constant: great },
  };
}
let train: typeof trainAndJudgePairs;

beforeEach(async () => {
  train = trainFast;
  clock = new SimulatedClock();
  inputs = [];
  tamper = (output) => output;
  const random = seededRandom(1);
  store = simulatedStore({ clock, random, latencyMs: 1 });
  const options = configSchema.parse({}).gpu;
  openData = () =>
    clock.runUntil(
      PerformanceData.open({ store, clock, random, logger, metrics: createMetrics(), instance: 0, options }),
    );
  const disk = new SimulatedDisk(clock, random, 0);
  const leases = embeddedState(clock);
  ({ jobs } = await clock.runUntil(openEmbeddedJobs({ disk, folder: '/jobs', clock, random, leases, holder: 'c0' })));
  const run: typeof runInWorker = (_, input) => {
    inputs.push(input as unknown as PairTrainingInput);
    const output = tamper(train(input as unknown as PairTrainingInput));
    return Promise.resolve(JSON.parse(JSON.stringify(output)) as JsonValue);
  };
  open = async () => {
    data = await openData();
    const training = new PairTraining({ performanceData: data, jobs, clock, logger, run });
    training.open();
    closeTraining = () => training.close();
  };
  await open();
});
let closeTraining: () => Promise<void>;
afterEach(async () => {
  await clock.runUntil(closeTraining());
  await clock.runUntil(jobs.close());
});

const smUtil = (at: number): number => 0.1 + 0.04 * at;
/** Measures all pairs of functions `from` to `to`, each `1 + weight·smUtil of the neighbour` times as long as alone. */
async function measure(from: number, to: number, weight: number): Promise<void> {
  const side = (at: number) => ({ name: `/a/f${at}`, share: 1, features: { smUtil: smUtil(at), share: 1 } });
  for (let one = from; one < to; one += 1) {
    for (let other = from; other < to; other += 1) {
      const degradation = weight * smUtil(other);
      data.pairMeasured(key, { victim: side(one), neighbour: side(other), degradation, from: 'sample' });
    }
  }
  await clock.runFor(3000);
}
const member = (at: number): SetMember => {
  return { kind: 'function', name: `a /a/f${at}`, share: 1, record: { smUtil: smUtil(at) } };
};
const predicted = (of = data): number => of.degradations.modelOf(gpu).term(member(3), member(2), 1);
const view = (of = data) => of.pairs.views();

test('five functions are enough for a first model, which predicts as it errs less than their figures', async () => {
  train = trainAndJudgePairs;
  await measure(0, 4, 1);
  expect([inputs.length, predicted()]).toEqual([0, 0]);
  expect(view()).toMatchObject([{ ...key, pairs: 16, measurements: 16, predictedBy: 'measuring' }]);
  await measure(4, 9, 1);
  expect(inputs).toMatchObject([{ version: 1 }]);
  // Their figures would fit on the GPU together.
  expect(predicted()).toBeCloseTo(smUtil(2), 1);
  const [{ errors, ...shown }] = view() as [ReturnType<typeof view>[number]];
  expect(shown).toMatchObject({ pairs: 41, predictedBy: 'model', version: 1, trainedPairs: inputs[0]?.samples.length });
  expect(errors!.model.rmsle).toBeLessThan(errors!.figures.rmsle);
});

describe('another training', () => {
  test('comes with a fifth of new pairs, counts its version up and keeps what weights have corrected', async () => {
    await measure(0, 6, 1);
    const count = inputs.length;
    expect(count).toBeGreaterThan(0);
    await clock.runFor(120_000);
    await measure(0, 6, 1);
    // Known pairs were measured again.
    expect(inputs).toHaveLength(count);
    await measure(6, 10, 1);
    expect(inputs.length).toBeGreaterThan(count);
    expect(inputs.map(({ version }) => version)).toEqual(inputs.map((_, at) => at + 1));
    expect(view()).toMatchObject([{ predictedBy: 'model', version: inputs.length }]);
  });

  test('comes after a day if anything was measured, and not otherwise', async () => {
    await measure(0, 5, 1);
    expect(inputs).toHaveLength(1);
    await clock.runFor(dayMs + 3_600_000);
    expect(inputs).toHaveLength(1);
    await measure(0, 5, 2);
    expect(inputs).toHaveLength(2);
  });

  test('that shows figures to err less has them predict again', async () => {
    await measure(0, 5, 1);
    expect(predicted()).toBeGreaterThan(0.1);
    tamper = ({ judgement, ...output }) => ({
      ...output,
      judgement: { ...judgement!, figures: { rmsle: 0, mae: 0 } },
    });
    await measure(5, 8, 1);
    expect(view()).toMatchObject([{ predictedBy: 'figures', errors: { figures: { rmsle: 0 } } }]);
    expect(predicted()).toBe(0);
  });

  test('of something else, or damaged, is no model', async () => {
    tamper = (output) => ({ ...output, model: { ...output.model, gpuType: 'h100' } });
    await measure(0, 5, 1);
    await clock.runFor(60_000);
    expect(await jobs.failed()).toMatchObject([
      { kind: 'pair-model', reason: expect.stringContaining('another kind') },
    ]);
    tamper = (output) => ({ ...output, model: { ...output.model, parts: [] } });
    await clock.runFor(600_000);
    expect((await jobs.failed()).at(-1)?.reason).toContain('no parts');
    expect([predicted(), view()]).toMatchObject([0, [{ predictedBy: 'figures' }]]);
    tamper = (output) => output;
    await clock.runFor(600_000);
    expect(view()).toMatchObject([{ predictedBy: 'model', version: 1 }]);
  });
});

describe('after a restart', () => {
  const restart = async (change?: (kind: DocumentKind, text: string) => string): Promise<void> => {
    await clock.runUntil(closeTraining());
    await clock.runUntil(data.close());
    if (change !== undefined) {
      for (const document of await clock.runUntil(store.list('gpu', { after: 'learned/pair', limit: 10 }))) {
        const { kind, name, text } = document as StoredDocument & { kind: DocumentKind; name: string; text: string };
        const changed = encodeDocument({ kind, name }, { text: change(kind, text) }, 0);
        await clock.runUntil(store.put('gpu', { ...changed, _rev: document._rev as string }));
      }
    }
    await open();
    await clock.runFor(1000);
  };

  test('pairs and model are there, with the corrections of weights', async () => {
    await measure(0, 5, 1);
    const before = { predicted: predicted(), view: view() };
    await restart();
    expect({ predicted: predicted(), view: view() }).toEqual(before);
    expect(inputs).toHaveLength(1);
  });

  test('a model of another format version is refused, and trained again', async () => {
    await measure(0, 5, 1);
    const before = predicted();
    await restart((kind, text) =>
      kind === 'pair-model' ? text.replace('"formatVersion":1', '"formatVersion":9') : text,
    );
    expect(inputs).toHaveLength(2);
    expect([predicted(), view()]).toMatchObject([before, [{ predictedBy: 'model', version: 1 }]]);
  });

  test('pairs of another version are refused, and the model predicts on', async () => {
    await measure(0, 5, 1);
    const before = predicted();
    await restart((kind, text) => (kind === 'pair-samples' ? text.replace('"version":1', '"version":9') : text));
    expect([predicted(), view()]).toMatchObject([before, [{ pairs: 0, predictedBy: 'model' }]]);
  });
});

test('an operator has the pairs of a function deleted, or all of a kind of GPU', async () => {
  await measure(0, 5, 1);
  data.forgetFunction('/a/f0');
  expect(view()).toMatchObject([{ pairs: 16, predictedBy: 'model' }]);
  expect(data.forgetModel({ gpuType: 'h100', mode: 'mps' })).toBe(false);
  expect(data.forgetModel(gpuKey)).toBe(true);
  expect([view(), predicted()]).toEqual([[], 0]);
  await clock.runFor(10_000);
  expect(await clock.runUntil(store.list('gpu', { after: 'learned/pair', limit: 10 }))).toEqual([]);
});
const gpuKey = { gpuType: 'a100-40', mode: 'mps' } as const;

test('measurements at fault are refused and counted', async () => {
  const side = { name: '/a/f', share: 1, features: { smUtil: 0.5 } };
  for (const degradation of [NaN, -0.8, 1e9]) {
    data.pairMeasured(key, { victim: side, neighbour: side, degradation, from: 'run' });
  }
  await clock.runFor(1000);
  expect([inputs, view()]).toMatchObject([[], [{ pairs: 0, predictedBy: 'measuring' }]]);
});
