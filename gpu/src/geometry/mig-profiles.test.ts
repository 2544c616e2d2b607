import { describe, expect, test } from '@jest/globals';
import { geometriesOf, migProfiles, placedSlots, sliceChanges } from './mig-profiles.js';

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
