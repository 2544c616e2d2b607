import { expect, test } from '@jest/globals';
import { groupedBy, keepNewest, withoutUndefined } from './collections.js';

test('items are grouped by key, keys and items in their order', () => {
  const groups = groupedBy(['pear', 'fig', 'plum', 'date'], (name) => name.length);
  expect([...groups]).toEqual([
    [4, ['pear', 'plum', 'date']],
    [3, ['fig']],
  ]);
});

test('an entry that is set again is the newest, and beyond the bound the oldest goes', () => {
  const map = new Map<string, number>();
  for (const key of ['a', 'b', 'a', 'c']) keepNewest(map, key, map.size, 2);
  expect([...map.keys()]).toEqual(['a', 'c']);
});

test('the oldest is removed as the caller says', () => {
  const [map, dropped] = [new Map([['a', 1]]), [] as string[]];
  keepNewest(map, 'b', 2, 1, (oldest) => dropped.push(oldest));
  expect([dropped, map.size]).toEqual([['a'], 2]);
});

test('fields that are undefined are left out', () => {
  expect(Object.entries(withoutUndefined({ a: 1, b: undefined, c: null, d: 0 }))).toEqual(
    Object.entries({ a: 1, c: null, d: 0 }),
  );
});
