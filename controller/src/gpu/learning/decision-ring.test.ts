import { expect, test } from '@jest/globals';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import { DecisionRing } from './decision-ring.js';

const decision = (at: number, reason = 'it waits', alternatives: string[] = []): DecisionRecord => ({
  ...{ at, activationId: `a${at}`, action: '/a/f', namespace: 'a', policy: 'exclusive', reason },
  rejected: alternatives.map((text) => ({ what: 'GPU-0', reason: text, numbers: {} })),
});
const times = (ring: DecisionRing): number[] => ring.latest().map(({ at }) => at);
const ringOf = (bytes: number, changed: number[] = []): DecisionRing =>
  new DecisionRing({ count: 6, bytes }, 2, (segment) => changed.push(segment));

test('the oldest decisions go when there are too many', () => {
  const changed: number[] = [];
  const ring = ringOf(Infinity, changed);
  for (let at = 1; at <= 8; at += 1) ring.add(decision(at));
  expect(times(ring)).toEqual([8, 7, 6, 5, 4, 3]);
  expect(changed).toEqual([0, 0, 1, 1, 2, 2, 0, 0]);
});

test('the oldest decisions go when they are too large, and their segments have changed', () => {
  const changed: number[] = [];
  const ring = ringOf(5000, changed);
  for (let at = 1; at <= 4; at += 1) ring.add(decision(at));
  const small = ring.bytes;
  ring.add(decision(5, 'x'.repeat(4500)));
  expect(times(ring)).toEqual([5, 4]);
  expect(ring.bytes).toBeLessThanOrEqual(5000);
  expect(changed).toEqual([0, 0, 1, 1, 2, 0, 0, 1]);
  expect(ring.segment(0)).toEqual([null, null]);
  for (let at = 6; at <= 9; at += 1) ring.add(decision(at));
  expect(times(ring)).toEqual([9, 8, 7, 6]);
  expect(ring.bytes).toBe(small);
});

test('one decision keeps no more than its part', () => {
  const ring = ringOf(1_000_000);
  ring.add(
    decision(
      1,
      'x'.repeat(1_000_000),
      Array.from({ length: 100 }, () => 'y'.repeat(1000)),
    ),
  );
  const [kept] = ring.latest();
  expect([kept?.reason.length, kept?.rejected.length]).toEqual([4096, 6]);
  expect(ring.bytes).toBeLessThan(16_384);
});

test('decisions that are taken up count', () => {
  const before = ringOf(Infinity);
  for (let at = 1; at <= 6; at += 1) before.add(decision(at));
  const ring = ringOf(before.bytes / 2);
  for (const segment of [2, 0, 1]) ring.restore(segment, before.segment(segment));
  expect(times(ring)).toEqual([6, 5, 4]);
  ring.add(decision(7));
  expect(times(ring)).toEqual([7, 6, 5]);
});
