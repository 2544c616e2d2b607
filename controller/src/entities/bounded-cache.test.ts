import { expect, test } from '@jest/globals';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { BoundedCache } from './bounded-cache.js';

function setUp(maxEntries = 10): { cache: BoundedCache<string>; pass(ms: number): void } {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs };
  return {
    cache: new BoundedCache(clock, { maxAgeMs: 100, maxEntries }),
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

/** A lookup that ends when the test says so. */
function lookup(): { look: () => Promise<string>; calls: () => number; end(value: string): void; fail(): void } {
  let settle: { resolve(value: string): void; reject(error: Error): void } | undefined;
  let calls = 0;
  return {
    look: () => {
      calls++;
      return new Promise((resolve, reject) => {
        settle = { resolve, reject };
      });
    },
    calls: () => calls,
    end: (value) => settle?.resolve(value),
    fail: () => settle?.reject(new Error('not found')),
  };
}

test('a value is remembered from being written until its age is up, however often it is read', () => {
  const { cache, pass } = setUp();
  cache.set('k', 'v');
  pass(99);
  expect(cache.get('k')).toBe('v');
  pass(1);
  expect(cache.get('k')).toBeUndefined();
});

test('the oldest goes where there are too many', () => {
  const { cache } = setUp(2);
  cache.set('a', '1');
  cache.set('b', '2');
  cache.set('a', '3');
  cache.set('c', '4');
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual(['3', undefined, '4']);
});

test('lookups of one key at once are one', async () => {
  const { cache } = setUp();
  const { look, calls, end } = lookup();
  const both = [cache.resolve('k', look), cache.resolve('k', look)];
  end('v');
  expect(await Promise.all(both)).toEqual(['v', 'v']);
  expect(await cache.resolve('k', look)).toBe('v');
  expect(calls()).toBe(1);
});

test('what is not found is looked up again', async () => {
  const { cache } = setUp();
  const { look, calls, end, fail } = lookup();
  const first = cache.resolve('k', look);
  fail();
  await expect(first).rejects.toThrow('not found');
  const second = cache.resolve('k', look);
  end('v');
  expect(await second).toBe('v');
  expect(calls()).toBe(2);
});

test('a lookup that began before a write does not overwrite it', async () => {
  const { cache } = setUp();
  const { look, end } = lookup();
  const before = cache.resolve('k', look);
  cache.set('k', 'new');
  end('old');
  expect(await before).toBe('old');
  expect(cache.get('k')).toBe('new');
});

test('a lookup that began before a drop is not remembered', async () => {
  const { cache } = setUp();
  const first = lookup();
  const second = lookup();
  const before = cache.resolve('k', first.look);
  cache.drop('k');
  const after = cache.resolve('k', second.look);
  first.end('old');
  await before;
  expect(cache.get('k')).toBeUndefined();
  second.end('new');
  await after;
  expect(cache.get('k')).toBe('new');
});
