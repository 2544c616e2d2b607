import { expect, test } from '@jest/globals';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { Arrivals } from './gpu-queue.js';

test('an arrival stays where it is while clocks round, and goes with a clock that is set', () => {
  const arrivals = new Arrivals();
  const waiting = { message: {} as ActivationMessage, arrivedMs: 100 };
  expect(arrivals.of(waiting, 5000, 100.4)).toBeCloseTo(4999.6);
  expect(arrivals.of(waiting, 5001, 100.9)).toBeCloseTo(4999.6);
  expect(arrivals.of(waiting, 65_002, 102)).toBe(65_000);
  expect(arrivals.of({ ...waiting, message: {} as ActivationMessage }, 5001, 101)).toBe(5000);
});
