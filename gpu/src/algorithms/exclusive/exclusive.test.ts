import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import { dividedSms, gpuOf, taskOf } from '../../testing/fixtures.js';
import { viewOf } from '../../testing/views.js';
import type { Decision } from '../../view/decision.js';

const asked = taskOf('t', { function: '/guest/t', namespace: 'guest' });

function decide(idle: NonNullable<ReportedPlace['idle']>): Decision {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const gpus = [gpuOf('a'), gpuOf('b', { idle })];
  return makePolicy('exclusive', needs).decide(viewOf({ gpus, waiting: [asked] }), { kind: 'timer' });
}

test('of GPUs that would do, one with a process of the function goes first', () => {
  const warm = (share: number) => [{ function: '/guest/t', namespace: 'guest', share, memoryMiB: 10 }];
  const chosen = (share: number) => decide(warm(share)).starts[0]?.gpu;
  // A process whose share is too small is of no use.
  expect([chosen(1), chosen(0.5)]).toEqual(['b', 'a']);
  expect(decide(warm(1)).starts[0]?.choice?.rejected.map(({ what, reason }) => [what, reason])).toEqual([
    ['a', 'no process of the function idles there'],
  ]);
});
