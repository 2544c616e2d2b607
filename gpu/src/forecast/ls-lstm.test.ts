import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { ArrivalHistory } from './arrival-history.js';
import { ForecastFormatError, restoredForecast, storedForecast } from './forecast-codec.js';
import { FunctionForecaster, longWeight, lsLstmDefaults, trainLsLstm, type Forecast } from './ls-lstm.js';

const few = { ...lsLstmDefaults, hidden: 8, updates: 150, lanes: 8, seed: 1 };

/** Requests each fifth minute, eight at a time. */
const periodic: readonly number[] = Array.from({ length: 600 }, (_, minute) => (minute % 5 === 0 ? 8 : 0));
const model = trainLsLstm([{ minute: 0, requests: periodic }], { ...few, isLong: false });

function forecasts(forecaster: FunctionForecaster, requests: readonly number[], from = 0): Forecast[] {
  return requests.map((one, at) => forecaster.step(from + at, one));
}

describe('an LS-LSTM', () => {
  test('learns a period: its errors are under a tenth of a forecast of the mean, and of the last value', () => {
    const made = forecasts(new FunctionForecaster(model), periodic);
    const [mean] = [periodic.reduce((sum, one) => sum + one, 0) / periodic.length];
    const errors = { ours: 0, mean: 0, last: 0 };
    for (let minute = 120; minute + 1 < periodic.length; minute += 1) {
      const next = periodic[minute + 1]!;
      errors.ours += Math.abs(made[minute]!.requests - next);
      errors.mean += Math.abs(mean - next);
      errors.last += Math.abs(periodic[minute]! - next);
      expect(made[minute]!.active > 0.5).toBe(next > 0);
    }
    expect(errors.ours).toBeLessThan(0.1 * Math.min(errors.mean, errors.last));
  });

  test('learns a daily rhythm with the long model, in functions that it was not trained on', () => {
    const random = seededRandom(2);
    const daily = (phase: number, days: number): number[] =>
      Array.from({ length: days * 1440 }, (_, minute) =>
        Math.floor((minute + phase) / 360) % 4 === 0 && randomFraction(random) < 0.5 ? 2 : 0,
      );
    const learned = [0, 300, 700].map((phase) => ({ minute: 0, requests: daily(phase, 2) }));
    const both = trainLsLstm(learned, { ...few, isLong: true });
    const made = forecasts(new FunctionForecaster(both), daily(900, 2));
    const meanOf = (from: number): number =>
      made.slice(from, from + 200).reduce((sum, { active }) => sum + active, 0) / 200;
    // Active from minute 540 to 900 of each day.
    expect(meanOf(1440 + 600)).toBeGreaterThan(5 * meanOf(1440 + 1100));
  });

  test('forecasts the same after it was stored and restored', () => {
    const restored = restoredForecast(JSON.parse(JSON.stringify(storedForecast(model))));
    const [one, other] = [new FunctionForecaster(model), new FunctionForecaster(restored)];
    expect(forecasts(other, periodic.slice(0, 260))).toEqual(forecasts(one, periodic.slice(0, 260)));
  });

  test.each([
    ['it is no object', null],
    ["its format is 'x'", { format: 'x' }],
    ['its version is 2, and 1 is read', { ...storedForecast(model), version: 2 }],
    ["there are no inputs 'all'", { ...storedForecast(model), inputs: 'all' }],
    ['it has no short model', { ...storedForecast(model), short: undefined }],
    [
      'its short model has 3 inputs, 8 units and 2 outputs instead of 13 inputs and 2 outputs',
      { ...storedForecast(model), short: { ...storedForecast(model).short, inputs: 3 } },
    ],
    [
      'its short model has 0 weights instead of 722',
      { ...storedForecast(model), short: { ...storedForecast(model).short, weights: '' } },
    ],
  ])('is not restored from data of which is said: %s', (reason, data) => {
    const restore = (): unknown => restoredForecast(data);
    expect(restore).toThrow(ForecastFormatError);
    expect(restore).toThrow(reason);
  });

  test('refuses a minute that has been', () => {
    const forecaster = new FunctionForecaster(model);
    forecaster.step(5, 1);
    expect(() => forecaster.step(5, 1)).toThrow('Minute 5 does not follow minute 5.');
  });

  test.each([
    ['no history', [0]],
    ['one call ever', [1, ...Array<number>(3000).fill(0)]],
    ['a burst of 10,000 calls a second', [...periodic.slice(0, 100), 600_000, 0, 0, 600_000, 600_000]],
    ['minutes that are not numbers', [1, NaN, Infinity, -1, NaN, 2, 0, 0, NaN]],
    ['the largest numbers', [1, Number.MAX_VALUE, 0, Number.MAX_VALUE, 1, ...Array<number>(100).fill(0)]],
    ['nothing but minutes that are not numbers', Array<number>(200).fill(NaN)],
  ])('forecasts finite numbers and probabilities with %s', (_, requests) => {
    for (const { requests: expected, active } of forecasts(new FunctionForecaster(model), requests)) {
      expect(Number.isFinite(expected) && expected >= 0).toBe(true);
      expect(active >= 0 && active <= 1).toBe(true);
    }
  });

  test('counts minutes that were left out as not known, years of them too', () => {
    const gap = new FunctionForecaster(model);
    const told = new FunctionForecaster(model);
    forecasts(gap, periodic.slice(0, 100));
    forecasts(told, [...periodic.slice(0, 100)]);
    expect(gap.step(5_000_000, 1).active).toBeGreaterThan(0);
    expect(told.step(100, NaN).active).toBeGreaterThan(0);
  });

  test('of the paper, on counts alone, learns the mean of a steady load', () => {
    const random = seededRandom(1);
    const steady = Array.from({ length: 800 }, () => 20 + Math.floor(10 * randomFraction(random)));
    const literal = trainLsLstm([{ minute: 0, requests: steady }], { ...few, inputs: 'counts', isLong: true });
    const made = forecasts(new FunctionForecaster(literal), steady).slice(100);
    for (const { requests } of made) expect(Math.abs(requests - 24.5)).toBeLessThan(6);
  });
});

describe('the weight of the long model', () => {
  const after = (requests: readonly number[]): number => {
    const history = new ArrivalHistory();
    for (const [minute, one] of requests.entries()) history.add(minute, one);
    return longWeight(history);
  };
  const burst = (at: number): number[] => Array.from({ length: 60 }, (_, minute) => (minute === at ? 30 : 0));
  const quiet = Array<number>(1380).fill(0);

  test('is 0.5 while the last hour is steady, and while it varies as the day before did', () => {
    expect(after(periodic)).toBe(0.5);
    expect(after([])).toBe(0.5);
    expect(after([...burst(20), ...quiet, ...burst(20)])).toBe(0.5);
  });

  test('is 0.2 while the last hour varies by more than twice its mean, unlike the day before', () => {
    expect(after([...burst(20), ...quiet, ...burst(40)])).toBe(0.2);
  });
});
