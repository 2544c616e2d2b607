import { describe, expect, test } from '@jest/globals';
import {
  computeSlicesOf,
  geometriesOf,
  geometryFault,
  migProfiles,
  placedSlots,
  sliceChanges,
} from './mig-profiles.js';

describe('geometries of a device', () => {
  test.each(Object.keys(migProfiles))('%s: each is placed within its slots, without overlaps', (type) => {
    const profiles = migProfiles[type as keyof typeof migProfiles];
    const geometries = geometriesOf(type);
    expect(new Set(geometries.map((one) => one.join())).size).toBe(geometries.length);
    for (const geometry of geometries) {
      const taken = placedSlots(type, geometry)!.flatMap((start, at) => {
        const { slots, starts } = profiles.find(({ name }) => name === geometry[at])!;
        expect(starts).toContain(start);
        return Array.from({ length: slots }, (_, slot) => start + slot);
      });
      expect(new Set(taken).size).toBe(taken.length);
      expect(Math.max(...taken)).toBeLessThan(8);
    }
  });

  test('seven of the smallest fit, eight do not; what NVIDIA lists as not possible is none', () => {
    const smallest = (count: number): string[] => Array.from({ length: count }, () => '1g.5gb');
    expect(placedSlots('a100-40', smallest(7))).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(placedSlots('a100-40', smallest(8))).toBeUndefined();
    expect(placedSlots('a100-40', ['3g.20gb', '3g.20gb', '1g.5gb'])).toBeUndefined();
    expect(placedSlots('a100-40', ['4g.20gb', '3g.20gb'])).toEqual([0, 4]);
    expect(placedSlots('a100-40', ['3g.71gb'])).toBeUndefined();
  });

  test('a device that cannot be cut has none', () => {
    expect(geometriesOf('rtx3090')).toEqual([]);
  });
});

test('slices of profiles that are wanted stay', () => {
  const slices = [
    { uuid: 'a', profile: '3g.20gb' },
    { uuid: 'b', profile: '3g.20gb' },
  ];
  expect(sliceChanges(slices, ['3g.20gb', '2g.10gb'])).toEqual({ remove: ['b'], add: ['2g.10gb'] });
  expect(sliceChanges(slices, [])).toEqual({ remove: ['a', 'b'], add: [] });
});

describe('illegal geometries', () => {
  test.each([
    [['4g.20gb', '4g.20gb'], 'do not fit together'],
    [['3g.20gb', '3g.20gb', '1g.5gb'], 'do not fit together'],
    [['4g.20gb', '3g.20gb', '1g.5gb'], 'do not fit together'],
    [['2g.10gb', '2g.10gb', '2g.10gb', '2g.10gb'], 'do not fit together'],
    [['1g.5gb+me', '1g.5gb+me'], 'do not fit together'],
    [['3g.40gb'], "'3g.40gb' is no profile of type a100-40; there are 1g.5gb, "],
    [['nine'], "'nine' is no profile"],
  ])('%j: %s', (profiles, fault) => {
    expect(geometryFault('a100-40', profiles)).toContain(fault);
  });

  test('legal ones, whole devices and types that are not in the table have no fault', () => {
    for (const profiles of [['4g.20gb', '2g.10gb', '1g.5gb'], ['1g.5gb+me', '1g.5gb'], []]) {
      expect(geometryFault('a100-40', profiles)).toBeUndefined();
    }
    expect(geometryFault('a30', ['2g.12gb'])).toBeUndefined();
  });

  // NVIDIA's MIG user guide: number of instances available, the same on all these types.
  test.each(Object.keys(migProfiles))('%s: at most as many of a profile fit as NVIDIA says', (type) => {
    const most = { '1 1': 7, '1 2': 4, '2 2': 3, '3 4': 2, '4 4': 1, '7 8': 1 } as Record<string, number>;
    for (const { name, slots } of migProfiles[type as keyof typeof migProfiles]) {
      const count = most[`${computeSlicesOf(name)} ${slots}`]!;
      const fits = (times: number): boolean => placedSlots(type, new Array<string>(times).fill(name)) !== undefined;
      expect([name, fits(count), fits(count + 1)]).toEqual([name, true, false]);
    }
  });
});

describe('changes of placed slices', () => {
  const at = (uuid: string, profile: string, startSlot: number) => ({ uuid, profile, startSlot });

  test('a slice stays only where the others find a place beside it', () => {
    const both = [at('low', '3g.20gb', 0), at('high', '3g.20gb', 4)];
    expect(sliceChanges(both, ['4g.20gb', '3g.20gb'], 'a100-40')).toEqual({
      remove: ['low'],
      add: ['4g.20gb'],
      starts: [0],
    });
    const [low] = both;
    expect(sliceChanges([low!], ['4g.20gb', '3g.20gb'], 'a100-40')).toEqual({
      remove: ['low'],
      add: ['4g.20gb', '3g.20gb'],
      starts: [0, 4],
    });
  });

  test('most slices stay, and new ones begin where NVIDIA lets them', () => {
    const slices = [at('large', '4g.20gb', 0), at('two', '2g.10gb', 4), at('one', '1g.5gb', 6)];
    expect(sliceChanges(slices, ['4g.20gb', '3g.20gb'], 'a100-40')).toEqual({
      remove: ['two', 'one'],
      add: ['3g.20gb'],
      starts: [4],
    });
  });
});
