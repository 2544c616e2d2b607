import { expect, test } from '@jest/globals';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { capacityModel } from './slowdown-predictor.js';
import { decodeModel, encodeModel, trainModel } from './slowdown-model.js';
import { inventedSamples } from '../testing/fixtures.js';
import { missOf, trainAndJudge, trainingModule } from './train-worker.js';
import type { TrainingInput, TrainingOutput } from './train-worker.js';

const key = { gpuType: 'a100-40', mode: 'mps' } as const;
const heldOut = inventedSamples(40, 2);
const input: TrainingInput = { ...key, version: 2, seed: 1, training: inventedSamples(60, 1), heldOut };
const never = new AbortController().signal;

test('what is learned predicts better than nothing learned, and is judged by what it has not seen', () => {
  const { model, miss, missInForce } = trainAndJudge(input);
  expect(missInForce).toBe(missOf(capacityModel, heldOut));
  expect(miss).toBeLessThan(missInForce);
  expect(decodeModel(model)).toMatchObject({ ...key, version: 2, sampleCount: 60 });
});

test('it is held against the model in force', () => {
  const inForce = encodeModel(trainModel(key, inventedSamples(150, 3), { version: 1, seed: 1 }));
  const poisoned = input.training.map((sample) => ({ ...sample, slowdown: 900 }));
  const { miss, missInForce } = trainAndJudge({ ...input, training: poisoned, inForce });
  expect(miss).toBeGreaterThan(missInForce);
});

test('one wild sample decides nothing', () => {
  const wild = { ...heldOut[0]!, slowdown: 1000 };
  expect(missOf(capacityModel, [wild])).toBe(Math.log(4));
  expect(missOf(capacityModel, [])).toBe(Infinity);
});

test('it runs in a thread', async () => {
  const given = await runInWorker(trainingModule, input as unknown as JsonValue, never);
  expect((given as unknown as TrainingOutput).model).toBe(trainAndJudge(input).model);
});
