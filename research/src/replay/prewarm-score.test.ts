import { describe, expect, test } from '@jest/globals';
import {
  bestOf,
  coldRate,
  forecastScore,
  idleTimeBound,
  isRegular,
  keepAlivePrewarm,
  ruleScore,
  sumOf,
  wasteRate,
  type TracePart,
} from './prewarm-score.js';

const trace = { name: 't', minutes: [2, 0, 0, 1, 1, 0, 1, 0, 0, 1] };
const part: TracePart = { trace, from: 2, to: 10, forecasts: trace.minutes.slice(2).map((one) => forecast(one)) };

function forecast(requests: number): { requests: number; active: number } {
  return { requests, active: requests > 0 ? 0.9 : 0.1 };
}

describe('scores', () => {
  test('of a rule count the part alone, with the minutes before it seen', () => {
    expect(ruleScore(part, () => keepAlivePrewarm(0))).toEqual({ active: 4, cold: 4, idle: 0, requests: 4 });
    // Loaded ahead in minutes 4, 5, 7 of the part's 3, 4, 6 and 9.
    expect(ruleScore(part, () => keepAlivePrewarm(1))).toEqual({ active: 4, cold: 3, idle: 2, requests: 4 });
    expect(ruleScore(part, () => keepAlivePrewarm(3))).toEqual({ active: 4, cold: 0, idle: 4, requests: 4 });
  });

  test('of forecasts count with their cool-down', () => {
    expect(forecastScore(part, { quantile: 0.5, coolDownMinutes: 0 })).toEqual({
      active: 4,
      cold: 0,
      idle: 0,
      requests: 4,
    });
    expect(forecastScore(part, { quantile: 0.5, coolDownMinutes: 1 }).idle).toBe(2);
    expect(forecastScore(part, { quantile: 0.05, coolDownMinutes: 0 }).cold).toBe(4);
  });

  test('give rates, 0 where there is nothing', () => {
    const score = { active: 4, cold: 1, idle: 4, requests: 8 };
    expect([coldRate(score), wasteRate(score)]).toEqual([0.25, 0.5]);
    expect([coldRate(sumOf([])), wasteRate(sumOf([]))]).toEqual([0, 0]);
  });
});

test('the best knob has the least idle minutes at the rate, or else the fewest cold starts', () => {
  const tried = [
    { cold: 0, idle: 9 },
    { cold: 1, idle: 3 },
    { cold: 1, idle: 2 },
    { cold: 5, idle: 0 },
  ].map(({ cold, idle }) => ({
    knob: { quantile: cold, coolDownMinutes: idle },
    score: { active: 10, requests: 10, cold, idle },
  }));
  expect(bestOf(tried, 0.1).score.idle).toBe(2);
  expect(bestOf(tried.slice(1), 0.05).score.idle).toBe(2);
});

test('a function with even intervals is regular, one with few or bursty ones is not', () => {
  const even = { name: 'e', minutes: Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 1 : 0)) };
  const bursty = { name: 'b', minutes: Array.from({ length: 50 }, (_, at) => (at % 20 < 3 ? 1 : 0)) };
  expect([isRegular(even, 50), isRegular(even, 6), isRegular(bursty, 50)]).toEqual([true, false, false]);
});

test('no rule on idle times wastes less than the bound', () => {
  for (const minutes of [1, 2, 3]) {
    const score = ruleScore(part, () => keepAlivePrewarm(minutes));
    expect(idleTimeBound([part], coldRate(score))).toBeLessThanOrEqual(score.idle);
  }
  // Each fifth minute: after four idle minutes requests are certain.
  const even = { name: 'e', minutes: Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 1 : 0)) };
  expect(idleTimeBound([{ trace: even, from: 10, to: 50, forecasts: [] }], 0)).toBe(0);
});
