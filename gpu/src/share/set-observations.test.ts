import { expect, test } from '@jest/globals';
import { SetObservations } from './set-observations.js';
import type { SetMember } from './set-observations.js';

const member = (name: string, share = 50): SetMember => ({
  job: { function: `/guest/${name}`, version: '0.0.1', batch: 1 },
  share,
});

test('a set is measured once each of its members is', () => {
  const sets = new SetObservations();
  const [a, b, c] = [member('a', 50), member('b', 30), member('c', 20)];
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [c, a, b], 3)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [a, b, c], 9)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [a, c, b], 1)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [b, a, c], 2)).toEqual({
    set: [a.job, b.job, c.job],
    point: { shares: [50, 30, 20], slowdowns: [1, 2, 3] },
  });
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [b, a, c], 2)).toBeUndefined();
});

test('members that are alike are measured each', () => {
  const sets = new SetObservations();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('a'), member('a')], 1.5)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('a'), member('a')], 1.7)?.point.slowdowns).toEqual([
    1.5, 1.7,
  ]);
});

test('other shares, another kind of GPU and another mode are other sets', () => {
  const sets = new SetObservations();
  sets.add({ gpuType: 'a100', mode: 'mps' }, [member('a'), member('b')], 1);
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('b', 30), member('a')], 1)).toBeUndefined();
  expect(sets.add({ gpuType: 'h100', mode: 'mps' }, [member('b'), member('a')], 1)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'timeslice' }, [member('b'), member('a')], 1)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('b'), member('a')], 2)?.point.slowdowns).toEqual([1, 2]);
});

test('of too many that were not finished the first is forgotten', () => {
  const sets = new SetObservations();
  for (let n = 0; n <= 1000; n += 1) sets.add({ gpuType: 'a100', mode: 'mps' }, [member(`a${n}`), member('b')], 1);
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('b'), member('a0')], 1)).toBeUndefined();
  expect(sets.add({ gpuType: 'a100', mode: 'mps' }, [member('b'), member('a1000')], 1)).toBeDefined();
});
