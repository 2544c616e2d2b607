import { beforeEach, expect, test } from '@jest/globals';
import type { GpuGrant } from '../containers/container-factory.js';
import { DeviceUse } from './device-use.js';

const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 1000 } as const;
const on = (devices: string[], slice?: string): GpuGrant => ({ devices, ...(slice !== undefined && { slice }), share });
let use: DeviceUse;
beforeEach(() => {
  use = new DeviceUse();
});
const besideMs = (run: string, nowMs: number): number | undefined => use.of(run, nowMs)?.besideMs;

test('a run alone has no other beside it: runs before, after and elsewhere do not count', () => {
  use.began('before', 'a', on(['g']), 0);
  use.ended('before', 10);
  use.began('run', 'b', on(['g']), 10);
  use.began('elsewhere', 'c', on(['h']), 11);
  expect(besideMs('run', 100)).toBe(0);
});

test('the time with others counts once, whatever their number and order', () => {
  use.began('run', 'a', on(['g']), 0);
  use.began('second', 'b', on(['g']), 20);
  use.began('third', 'c', on(['g']), 30);
  use.ended('second', 50);
  use.ended('third', 60);
  expect(besideMs('run', 100)).toBe(40);
  use.began('fourth', 'd', on(['g']), 100);
  expect([besideMs('run', 130), besideMs('fourth', 130)]).toEqual([70, 30]);
});

test('other requests in its container are part of its run', () => {
  use.began('run', 'a', on(['g']), 0);
  use.began('same', 'a', on(['g']), 0);
  expect(besideMs('run', 100)).toBe(0);
});

test('slices of a device are apart, and a run on two devices shares both', () => {
  use.began('one', 'a', on(['g'], 'MIG-1'), 0);
  use.began('other', 'b', on(['g'], 'MIG-2'), 0);
  use.began('gang', 'c', on(['h', 'i']), 0);
  use.began('beside', 'd', on(['i']), 0);
  expect(['one', 'other', 'gang', 'beside'].map((run) => besideMs(run, 10))).toEqual([0, 0, 10, 10]);
});

test('runs that come and go on one of its two devices count, whatever happens on others', () => {
  use.began('gang', 'a', on(['g', 'h']), 0);
  use.began('other', 'b', on(['h']), 10);
  use.began('elsewhere', 'c', on(['i']), 15);
  use.ended('other', 30);
  use.began('next', 'd', on(['g']), 40);
  use.ended('elsewhere', 45);
  expect(besideMs('gang', 50)).toBe(30);
});

test('a run that has ended is not known', () => {
  use.began('run', 'a', on(['g']), 0);
  use.ended('run', 5);
  expect(besideMs('run', 10)).toBeUndefined();
});
