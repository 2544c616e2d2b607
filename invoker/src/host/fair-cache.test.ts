import { expect, test } from '@jest/globals';
import { superfluous } from './fair-cache.js';
import type { CacheEntry } from './fair-cache.js';

const entry = (name: string, owner: string, bytes: number, usedMs: number, isKept = false): CacheEntry => ({
  name,
  owner,
  bytes,
  usedMs,
  isKept,
});
const names = (entries: CacheEntry[], maxBytes: number): string[] =>
  superfluous(entries, maxBytes).map(({ name }) => name);

test('within the bound, an owner has all that others leave', () => {
  expect(names([entry('a', 'one', 80, 1), entry('b', 'two', 20, 2)], 100)).toEqual([]);
});

test('beyond it, the owner with the most loses its own, those unused longest first', () => {
  const others = [entry('old', 'two', 30, 0)];
  const many = Array.from({ length: 20 }, (_, n) => entry(`m${n}`, 'one', 10, 100 - n));
  expect(names([...others, ...many], 100)).toEqual(Array.from({ length: 13 }, (_, n) => `m${19 - n}`));
});

test('an owner within its part loses nothing, even if others keep what is in use', () => {
  const entries = [entry('a', 'one', 90, 5, true), entry('b', 'one', 10, 9), entry('c', 'two', 50, 1)];
  expect(names(entries, 100)).toEqual(['b']);
});
