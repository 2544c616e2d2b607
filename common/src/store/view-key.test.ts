import { describe, expect, test } from '@jest/globals';
import type { ViewKey } from './artifact-store.js';
import { maxKeyBytes, parseRow, rangeOf, rangeUnder, rowKey } from './view-key.js';

const inOrder: ViewKey[] = [
  [-Infinity],
  [-1e300],
  [-1],
  [-0.5],
  [0],
  [1e-300],
  [2],
  [10],
  [1_700_000_000_000],
  [Infinity],
  [''],
  ['', 0],
  ['a'],
  ['a', -1],
  ['a', 5],
  ['a', 5, 'x'],
  ['a', ''],
  ['a', 'b'],
  ['a\0'],
  ['a\0b'],
  ['a b'],
  ['a/b'],
  ['ab'],
  ['b'],
  ['é'],
  ['\ufff0'],
  ['😀'],
];

describe('view keys as bytes', () => {
  test('order as CouchDB orders them', () => {
    const shuffled = inOrder.map((key) => rowKey(key, 'id')).sort((one, other) => one.compare(other));
    expect(shuffled.map((row) => parseRow(row).key)).toEqual(inOrder);
  });

  test('rows of one key order by id and are read back', () => {
    for (const key of inOrder) {
      const rows = ['a', 'guest/ä b', '😀'].map((id) => rowKey(key, id));
      expect(rows.map((row) => parseRow(row))).toEqual(['a', 'guest/ä b', '😀'].map((id) => ({ key, id })));
      expect([...rows].sort((one, other) => one.compare(other))).toEqual(rows);
    }
  });

  test('a range holds its ends and nothing beyond', () => {
    for (const [first, startKey] of inOrder.entries()) {
      for (let last = first; last < inOrder.length; last++) {
        const { start, end } = rangeOf(startKey, inOrder[last] ?? []);
        const inside = inOrder.filter((key) => {
          const row = rowKey(key, '😀');
          return row.compare(start) >= 0 && row.compare(end) < 0;
        });
        expect(inside).toEqual(inOrder.slice(first, last + 1));
      }
    }
  });

  test('a prefix covers what begins with it', () => {
    const { start, end } = rangeUnder(['a', 5]);
    const inside = inOrder.filter((key) => {
      const row = rowKey(key, 'id');
      return row.compare(start) >= 0 && row.compare(end) < 0;
    });
    expect(inside).toEqual([
      ['a', 5],
      ['a', 5, 'x'],
    ]);
  });

  test('-0 is 0', () => {
    expect(rowKey([-0], 'id')).toEqual(rowKey([0], 'id'));
  });

  test('a key that LMDB would not take is refused', () => {
    expect(() => rowKey(['x'.repeat(maxKeyBytes)], 'id')).toThrow(RangeError);
    expect(() => rowKey(['x'], 'i'.repeat(100_000))).toThrow(RangeError);
  });
});
