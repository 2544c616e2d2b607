import { expect, test } from '@jest/globals';
import { formatDuration, shorten } from './activations.js';

test.each([
  [0, '0s'],
  [7, '7ms'],
  [999, '999ms'],
  [1000, '1s'],
  [1230, '1.23s'],
  [60_000, '1m0s'],
  [65_500, '1m5.5s'],
  [3_600_000, '1h0m0s'],
  [7_384_005, '2h3m4.005s'],
  [-1500, '-1.5s'],
])('%d ms is %s', (durationMs, text) => {
  expect(formatDuration(durationMs)).toBe(text);
});

test.each([
  ['short', 20, 'short'],
  ['exactly-twenty-chars', 20, 'exactly-twenty-chars'],
  ['one-more-than-twenty-', 20, 'one-more-t...twenty-'],
  ['abcdefgh', 7, 'abcd...'],
])('%s in %d characters is %s', (text, most, shortened) => {
  expect(shorten(text, most)).toBe(shortened);
});
