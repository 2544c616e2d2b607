import type { JsonValue } from '@gpuwhisk/common/json';
import { storedForecast } from './forecast-codec.js';
import { lsLstmDefaults, trainLsLstm } from './ls-lstm.js';
import type { RequestSeries } from './ls-lstm.js';

/** Input of a training in a thread. */
export interface ForecastTrainingInput {
  series: readonly RequestSeries[];
  seed: number;
  /** Whether a long model is trained: some function has a day of history. */
  isLong: boolean;
}

/** This module, for a thread of its own. */
export const forecastTrainingModule = new URL(import.meta.url);

/** Trains a model and gives it as plain data (`storedForecast`). Throws RangeError as `trainLsLstm` does. */
export default function train(input: JsonValue): JsonValue {
  const { series, seed, isLong } = input as unknown as ForecastTrainingInput;
  return { ...storedForecast(trainLsLstm(series, { ...lsLstmDefaults, seed, isLong })) } as unknown as JsonValue;
}
