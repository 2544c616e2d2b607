import { expect, test } from '@jest/globals';
import { StepSize } from './step-size.js';

const bounds = { least: 100, most: 1000, growsBelowMs: 20, shrinksAboveMs: 40 };

/** Sizes of the steps by which a backlog is worked off, if each takes `msOf` its records. */
function stepsOf(backlog: number, msOf: (records: number) => number): number[] {
  const size = new StepSize(bounds);
  const steps: number[] = [];
  for (let left = backlog; left > 0;) {
    const records = Math.min(left, size.most);
    steps.push(records);
    size.took(records, msOf(records));
    left -= records;
  }
  return steps;
}

test('steps grow with the backlog, up to their bound', () => {
  expect(stepsOf(50, () => 1)).toEqual([50]);
  expect(stepsOf(3000, () => 1)).toEqual([100, 200, 400, 800, 1000, 500]);
});

test('steps that take long are smaller, and never smaller than the least', () => {
  // 0.05 ms a record and 12 ms for the disk.
  const steps = stepsOf(100_000, (records) => 12 + records * 0.05);
  expect(Math.max(...steps)).toBe(200);
  expect(Math.max(...stepsOf(10_000, (records) => 60 + records))).toBe(100);
  const busy = new StepSize(bounds);
  for (const ms of [1, 1, 1]) busy.took(busy.most, ms);
  busy.took(busy.most, 50);
  expect(busy.most).toBe(400);
});
