import { describe, expect, test } from '@jest/globals';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { JsonValue } from '@gpuwhisk/common/json';
import { decodePairModel } from './pair-model-codec.js';
import { figuresDegradation, type PairSample } from './pair-degradation.js';
import { leastTrainingPairs, pairTrainingModule, trainAndJudgePairs } from './pair-training.js';
import type { PairTrainingOutput } from './pair-training.js';
import type { FeatureRecord } from './slowdown-predictor.js';

const key = { gpuType: 'a100-40', mode: 'mps', victim: 'function', neighbour: 'function' } as const;

/** All pairs of functions that fill 0.15, 0.3, … of the GPU, with degradations by `truth`. */
function pairsOf(count: number, truth: (victim: FeatureRecord, neighbour: FeatureRecord) => number): PairSample[] {
  const functions = Array.from({ length: count }, (_, at) => {
    return { model: `/a/f${at}`, features: { smUtil: 0.15 * (at + 1), soloMs: 10 * (at + 1), share: 1 } };
  });
  return functions.flatMap((victim) =>
    functions.map((neighbour) => ({ victim, neighbour, degradation: truth(victim.features, neighbour.features) })),
  );
}
/** Figures alone predict these exactly. */
const byFigures = (victim: FeatureRecord, neighbour: FeatureRecord): number => figuresDegradation(victim, neighbour)!;
const byMemory = (victim: FeatureRecord, neighbour: FeatureRecord): number =>
  0.2 + neighbour.smUtil! * 0.8 + victim.smUtil! * 0.1;
const train = (samples: readonly PairSample[]): PairTrainingOutput =>
  trainAndJudgePairs({ ...key, version: 3, seed: 3, samples });

describe('a model of all pairs of five functions', () => {
  test('errs less than figures and the mean where figures do not tell', () => {
    const samples = pairsOf(5, byMemory);
    expect(samples).toHaveLength(leastTrainingPairs);
    const { model, judgement } = train(samples);
    expect(decodePairModel(model)).toMatchObject({ ...key, version: 3 });
    expect(judgement?.judged).toBe(samples.length);
    expect(judgement!.model.rmsle).toBeLessThan(0.6 * judgement!.figures.rmsle);
    expect(judgement!.model.rmsle).toBeLessThan(0.6 * judgement!.constant.rmsle);
    expect(judgement!.model.mae).toBeLessThan(judgement!.figures.mae);
  });

  test('errs more than figures where these tell all', () => {
    const { judgement } = train(pairsOf(5, byFigures));
    expect(judgement!.figures.rmsle).toBeCloseTo(0);
    expect(judgement!.model.rmsle).toBeGreaterThan(0);
  });
});

test('pairs of two functions only are not judged, as too little is left to learn from', () => {
  const [one, other] = pairsOf(2, byMemory);
  const samples = Array.from({ length: 30 }, (_, at) => (at % 2 === 0 ? one! : other!));
  expect(train(samples).judgement).toBeUndefined();
  expect(() => train(pairsOf(4, byMemory))).toThrow('takes 20 samples');
});

test('it runs in a thread', async () => {
  const input = { ...key, version: 3, seed: 3, samples: pairsOf(5, byMemory) };
  const given = await runInWorker(pairTrainingModule, input as unknown as JsonValue, new AbortController().signal);
  expect(given).toEqual(JSON.parse(JSON.stringify(train(input.samples))));
});
