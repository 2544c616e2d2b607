import { expect, test } from '@jest/globals';
import { FunctionForecasts } from './function-forecasts.js';
import { FunctionForecaster, lsLstmDefaults, noRequests, trainLsLstm } from './ls-lstm.js';

const minuteMs = 60_000;
const options = { ...lsLstmDefaults, hidden: 4, updates: 20, lanes: 4, seed: 1, isLong: false };
const requestsAt = (minute: number): number => (minute % 7 === 0 ? 3 : 0);
const model = trainLsLstm([{ minute: 0, requests: Array.from({ length: 300 }, (_, at) => requestsAt(at)) }], options);

/** Arrivals of a function since minute 0, as a scheduler counts them, and how often they were read. */
function newArrivals(length = 1440): { byMinute(at: number): Uint32Array; reads: number } {
  return {
    reads: 0,
    byMinute(at) {
      this.reads += 1;
      const newest = Math.floor(at / minuteMs);
      return Uint32Array.from({ length }, (_, index) => {
        const minute = newest - (length - 1 - index);
        return minute < 0 ? 0 : requestsAt(minute);
      });
    },
  };
}

test('a function that is asked for each second has the forecasts of one that is stepped each minute', () => {
  const forecasts = new FunctionForecasts(model);
  const arrivals = newArrivals();
  const stepped = new FunctionForecaster(model);
  for (let minute = 1; minute < 50; minute += 1) {
    const expected = stepped.step(minute - 1, requestsAt(minute - 1));
    for (const second of [0, 1, 59]) {
      expect(forecasts.of('f', arrivals, minute * minuteMs + second * 1000)).toEqual(expected);
    }
  }
  expect(arrivals.reads).toBe(49);
});

test('minutes between two questions are stepped through', () => {
  const often = new FunctionForecasts(model);
  const seldom = new FunctionForecasts(model);
  const arrivals = newArrivals();
  seldom.of('f', arrivals, 10 * minuteMs);
  for (let minute = 10; minute <= 45; minute += 1) often.of('f', arrivals, minute * minuteMs);
  expect(seldom.of('f', arrivals, 45 * minuteMs)).toEqual(often.of('f', arrivals, 45 * minuteMs));
});

test('a function of which only the last day is known is forecast nearly as one that was known all the time', () => {
  const long = new FunctionForecasts(model);
  const arrivals = newArrivals();
  for (let minute = 1; minute <= 3000; minute += 30) long.of('f', arrivals, minute * minuteMs);
  const expected = long.of('f', arrivals, 3000 * minuteMs);
  const { active } = new FunctionForecasts(model).of('f', arrivals, 3000 * minuteMs);
  expect(Math.abs(active - expected.active)).toBeLessThan(0.05);
});

test('a function without a request is expected to have none, and a clock set back changes nothing', () => {
  const forecasts = new FunctionForecasts(model);
  const none = { byMinute: () => new Uint32Array(1440) };
  expect(forecasts.of('g', none, 100 * minuteMs)).toEqual(noRequests);
  const newest = forecasts.of('f', newArrivals(), 100 * minuteMs);
  expect(forecasts.of('f', newArrivals(), 50 * minuteMs)).toEqual(newest);
});

test('functions beyond the bound are forgotten', () => {
  const forecasts = new FunctionForecasts(model, 2);
  const arrivals = newArrivals();
  for (const key of ['a', 'b', 'c', 'a']) forecasts.of(key, arrivals, 100 * minuteMs);
  expect(arrivals.reads).toBe(4);
  forecasts.of('a', arrivals, 100 * minuteMs);
  expect(arrivals.reads).toBe(4);
});
