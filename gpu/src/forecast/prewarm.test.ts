import { describe, expect, test } from '@jest/globals';
import { hhpPrewarm, histogramDefaults, IdleTime, lsthPrewarm, type Prewarmer } from './prewarm-rules.js';
import { instanceTarget, poissonQuantile } from './prewarm-target.js';

/** Whether the function is loaded ahead in each minute. */
function loaded(rule: Prewarmer, requests: readonly number[]): number[] {
  let ahead = 0;
  return requests.map((one, minute) => {
    const now = ahead;
    rule.add(minute, one);
    ahead = rule.target();
    return now;
  });
}

const every = (minutes: number, length: number): number[] =>
  Array.from({ length }, (_, minute) => (minute % minutes === 0 ? 1 : 0));

test('the idle time counts minutes that were left out, and is told when requests end it', () => {
  const idle = new IdleTime();
  expect([idle.step(1, 1), idle.step(4, NaN), idle.step(6, 0), idle.minutes]).toEqual([
    undefined,
    undefined,
    undefined,
    5,
  ]);
  expect([idle.step(8, 2), idle.minutes]).toEqual([6, 0]);
});

describe('hybrid histogram policy', () => {
  test('keeps a function with few idle times for the whole range', () => {
    const once = [1, ...Array<number>(300).fill(0)];
    const made = loaded(hhpPrewarm(), once);
    expect(made.indexOf(0, 1)).toBe(1 + histogramDefaults.rangeMinutes);
  });

  test('unloads between the requests of a period and loads before the next, without a cold start', () => {
    const requests = every(30, 1200);
    const made = loaded(hhpPrewarm(), requests);
    const last = requests.slice(600).map((one, at) => [one, made[600 + at]!] as const);
    expect(last.filter(([one, ahead]) => one > 0 && ahead === 0)).toEqual([]);
    // 29 idle minutes: loaded from the 26th (less 10 %) on.
    expect(last.filter(([one, ahead]) => one === 0 && ahead > 0)).toHaveLength(20 * 3);
  });

  test('counts idle times by the requests within a minute too', () => {
    const busy = Array.from({ length: 200 }, (_, minute) => (minute % 2 === 0 ? 1000 : 0));
    const made = loaded(hhpPrewarm(), busy);
    // All but one in 1,000 are under a minute.
    expect(made.slice(150)).toEqual(Array<number>(50).fill(1));
  });
});

test('LSTH follows the last hour sooner than HHP does', () => {
  const requests = [...every(30, 2400), ...every(4, 120), ...Array<number>(60).fill(0)];
  const minutesAfterwards = (rule: Prewarmer): number =>
    loaded(rule, requests)
      .slice(2520)
      .filter((ahead) => ahead > 0).length;
  expect(minutesAfterwards(lsthPrewarm())).toBeLessThan(minutesAfterwards(hhpPrewarm()));
});

describe('Poisson quantile', () => {
  test.each([
    [0, 0.99, 0],
    [NaN, 0.99, 0],
    [0.01, 0.99, 0],
    [0.011, 0.99, 1],
    [1, 0.99, 4],
    [10, 0.5, 10],
    [100, 0.99, 124],
    [10_000, 0.99, 10_233],
    [600_000, 0.99, 601_803],
  ])('of mean %d at %d is %d', (mean, quantile, expected) => {
    expect(poissonQuantile(mean, quantile)).toBe(expected);
  });

  test('refuses a quantile of 1', () => {
    expect(() => poissonQuantile(1, 1)).toThrow('A quantile is between 0 and 1, not 1.');
  });
});

describe('pre-warm target', () => {
  /** C of the policies document, section 4. */
  const atOnce = ({ requests }: { requests: number }, runS: number): number =>
    poissonQuantile((requests * runS) / 60, 0.99);

  test('loads a function of short runs whose requests are likely, where requests a minute alone would load none', () => {
    const likely = { requests: 5, active: 0.9 };
    expect([instanceTarget(likely, 0.05, 0.99), atOnce(likely, 0.05)]).toEqual([1, 0]);
    expect(instanceTarget({ requests: 0.005, active: 0.005 }, 60, 0.99)).toBe(0);
  });

  test('loads for the requests that run at a time', () => {
    const sure = { requests: 60, active: 1 };
    expect(instanceTarget(sure, 10, 0.99)).toBe(atOnce(sure, 10));
    expect(instanceTarget({ requests: 60, active: 0.5 }, 10, 0.99)).toBeGreaterThan(atOnce(sure, 10));
  });
});
