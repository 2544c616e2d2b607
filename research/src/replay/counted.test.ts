import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { countingRules, newRuleCounts } from './counted.js';
import { viewOf } from '@gpuwhisk/gpu/testing/views';

test('decisions are counted by what they say, and stay the same', () => {
  const start = (reason: string) => ({ task: 't', gpu: 'g', share: 1, reason });
  const refusal = { task: 'u', what: 'g', reason: 'too little free memory', numbers: {} };
  const decision = {
    starts: [
      start('beside 0 others; share: filling'),
      start('beside 2 others; share: hit'),
      start('beside 1 others; share: hit'),
      start('score 1.000, the first of 2'),
    ],
    ...{ refused: [], bestEffort: [], order: [], rejected: [refusal, refusal] },
  };
  const policy: Policy = { name: 'fixed', decide: () => decision, saved: () => 7 };
  const counts = newRuleCounts();
  const counted = countingRules(() => policy, counts)(
    { predictorOf: () => ({ slowdown: () => 1 }), random: seededRandom(1), admission: 'best-effort' },
    { gpus: 1, jobs: 1, length: 1, startMs: 0, sloFactor: 4 },
  );
  expect(counted.decide(viewOf({}), { kind: 'timer' })).toBe(decision);
  expect(counted.saved?.()).toBe(7);
  expect(counts).toEqual({
    decisions: 1,
    starts: new Map([
      ['alone', 1],
      ['beside others, share: hit', 2],
      ['other', 1],
    ]),
    refusals: new Map([['too little free memory', 2]]),
  });
});
