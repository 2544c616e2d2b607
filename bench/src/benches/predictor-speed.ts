import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { faashareForest, predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import { faashareFeatures, type CoLocated } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { medianOf, type Measurement } from '../bench.js';

/** As many as the paper's data set has (section V). */
const sampleCount = 1000;
const rounds = 31;
const perRound = 5000;

/** Invented runs beside one to four neighbours, as the time of a prediction does not depend on what is true. */
function inventedSamples(seed: number): SlowdownSample[] {
  const random = seededRandom(seed);
  const workload = (): CoLocated => {
    const [smUtil, dramUtil, l2Util] = [0, 0, 0].map(() => randomFraction(random)) as [number, number, number];
    return { features: { smUtil, dramUtil, l2Util }, share: (1 + Math.floor(randomFraction(random) * 10)) / 10 };
  };
  return Array.from({ length: sampleCount }, () => {
    const one = workload();
    const others = Array.from({ length: 1 + Math.floor(randomFraction(random) * 4) }, workload);
    const contended = others.reduce((sum, { features }) => sum + features.dramUtil! * one.features.dramUtil!, 1);
    return { one, others, slowdown: contended * (1 + 0.05 * randomFraction(random)) };
  });
}

/** Processor time of a prediction, us, round by round: on a busy machine the clock measures the others. */
function timesOf(predict: (i: number) => number): number[] {
  const times: number[] = [];
  let sum = 0;
  for (let round = 0; round < rounds; round += 1) {
    const start = process.cpuUsage();
    for (let i = 0; i < perRound; i += 1) sum += predict((i * 7919) % sampleCount);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / perRound);
  }
  if (!Number.isFinite(sum)) throw new Error('A prediction is not finite.');
  // The first rounds are those in which the code is compiled.
  return times.slice(5);
}

/**
 * `predictUs`: processor time of one prediction of the shipped predictor, from utilisations and shares to slowdown: 100 trees of depth
 * 12, regression and capacity model; `literalPredictUs`: the paper's forest alone. `trainMs`: learning from 1,000 runs.
 */
export function measureSpeed(seed: number): Measurement[] {
  const samples = inventedSamples(seed);
  const start = performance.now();
  const model = trainModel({ gpuType: 'bench', mode: 'mps' }, samples, { version: 1, seed });
  const trainMs = performance.now() - start;
  const predictor = modelPredictor(model);
  const rows = samples.map(({ one, others }) => faashareFeatures(one, others));
  const literal = trainForest(
    rows,
    samples.map(({ slowdown }) => slowdown),
    { ...faashareForest, seed },
  );
  return [
    medianOf(
      'predictUs',
      timesOf((i) => predictor.slowdown(samples[i]!.one, samples[i]!.others)),
    ),
    medianOf(
      'literalPredictUs',
      timesOf((i) => predictForest(literal, rows[i]!)),
    ),
    { name: 'trainMs', value: trainMs },
  ];
}
