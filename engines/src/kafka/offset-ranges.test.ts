import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { OffsetRanges } from './offset-ranges.js';

const listed = (ranges: OffsetRanges): [number, number][] => {
  const all: [number, number][] = [];
  ranges.forEach((from, to) => all.push([from, to]));
  return all;
};

describe('ranges of offsets', () => {
  test('grow together where they touch', () => {
    const ranges = new OffsetRanges();
    ranges.add(5, 6);
    ranges.add(7, 9);
    expect(listed(ranges)).toEqual([
      [5, 6],
      [7, 9],
    ]);
    ranges.add(6, 7);
    expect(listed(ranges)).toEqual([[5, 9]]);
    ranges.add(0, 20);
    expect(listed(ranges)).toEqual([[0, 20]]);
    expect(ranges.count).toBe(20);
  });

  test('hold what a plain set holds', () => {
    const random = seededRandom(3);
    const ranges = new OffsetRanges();
    const set = new Set<number>();
    for (let i = 0; i < 500; i++) {
      const from = random.uint32() % 300;
      const to = from + (random.uint32() % 4);
      ranges.add(from, to);
      for (let offset = from; offset < to; offset++) set.add(offset);
      expect(ranges.count).toBe(set.size);
    }
    for (let offset = 0; offset < 310; offset++) expect(ranges.has(offset)).toBe(set.has(offset));
    const all = listed(ranges);
    for (const [index, [from, to]] of all.entries()) {
      expect(to).toBeGreaterThan(from);
      expect(from).toBeGreaterThan(all[index - 1]?.[1] ?? -1);
    }
  });

  test('give up their beginning', () => {
    const ranges = new OffsetRanges();
    ranges.add(3, 5);
    ranges.add(8, 9);
    expect(ranges.takeFrom(2)).toBe(2);
    expect(ranges.takeFrom(3)).toBe(5);
    expect(ranges.takeFrom(5)).toBe(5);
    expect(ranges.count).toBe(1);
  });

  test('are read as they were written', () => {
    const ranges = new OffsetRanges();
    for (const offset of [1_000_002, 1_000_003, 1_000_007]) ranges.add(offset, offset + 1);
    const text = ranges.encode(1_000_000, 100);
    expect(text).toBe('2-3,7');
    expect(listed(OffsetRanges.decode(text, 1_000_000) as OffsetRanges)).toEqual(listed(ranges));
  });

  test('leave out what finds no room', () => {
    const ranges = new OffsetRanges();
    for (let offset = 1; offset < 5000; offset += 2) ranges.add(offset, offset + 1);
    const text = ranges.encode(0, 50);
    expect(text.length).toBeLessThanOrEqual(50);
    expect(OffsetRanges.decode(text, 0)?.count).toBeGreaterThan(10);
  });

  test.each(['x', '1-', '-1', '1,,2', '{"a":1}', '1;2'])('text of others is no set: %s', (text) => {
    expect(OffsetRanges.decode(text, 0)).toBeUndefined();
  });
});
