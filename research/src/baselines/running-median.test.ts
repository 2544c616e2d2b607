import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { RunningMedian } from './faashare-forest.js';

test('median and deviation are those of the values so far, whatever their order', () => {
  const random = seededRandom(5);
  const running = new RunningMedian(200);
  for (let round = 0; round < 3; round += 1) {
    running.reset();
    expect(running.deviation()).toBe(0);
    const values: number[] = [];
    for (let i = 0; i < 200; i += 1) {
      // Rounded, so that values repeat.
      const value = Math.round(randomFraction(random) * 40 - 20);
      values.push(value);
      running.push(value);
      const sorted = [...values].sort((a, b) => a - b);
      const median = (sorted[(i + 1) >> 1]! + sorted[i >> 1]!) / 2;
      expect(running.median()).toBeCloseTo(i % 2 === 0 ? sorted[i >> 1]! : median, 9);
      const deviation = values.reduce((sum, each) => sum + Math.abs(each - running.median()), 0);
      expect(running.deviation()).toBeCloseTo(deviation, 9);
    }
  }
});
