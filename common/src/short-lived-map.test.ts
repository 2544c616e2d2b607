import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { ShortLivedMap } from './short-lived-map.js';

test('it has what was set and not deleted, in the order in which it came', () => {
  const map = new ShortLivedMap<number, string>();
  for (let key = 0; key < 10_000; key += 1) {
    map.set(key, `value ${key}`);
    if (key >= 3) expect(map.delete(key - 3)).toBe(true);
  }
  expect(map.size).toBe(3);
  expect(map.keys()).toEqual([9997, 9998, 9999]);
  expect(map.values()).toEqual(['value 9997', 'value 9998', 'value 9999']);
  expect(map.entries()[0]).toEqual([9997, 'value 9997']);
  expect([map.has(9996), map.get(9996), map.has(9999), map.get(9999)]).toEqual([false, undefined, true, 'value 9999']);
  expect(map.delete(9996)).toBe(false);
  map.clear();
  expect([map.size, map.get(9999)]).toEqual([0, undefined]);
});

test('what is deleted does not outlive a collection of the young generation, however old the map is', () => {
  const code = `
    const { getHeapSpaceStatistics } = require('v8');
    import(${JSON.stringify(new URL('./short-lived-map.js', import.meta.url).href)}).then(({ ShortLivedMap }) => {
      const map = new ShortLivedMap();
      map.set(-1, {});
      gc();
      gc();
      const oldMiB = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size / 2 ** 20;
      const beforeMiB = oldMiB();
      for (let key = 0; key < 50_000; key += 1) {
        map.set(key, new Array(250).fill(key));
        map.delete(key - 50);
      }
      console.log(oldMiB() - beforeMiB);
    });`;
  const flags = ['--expose-gc', '--max-semi-space-size=4', '--no-incremental-marking', '--max-old-space-size=1000'];
  const grownMiB = Number(execFileSync(process.execPath, [...flags, '-e', code], { encoding: 'utf8' }));
  // More than sixty with a map of V8's.
  expect(grownMiB).toBeLessThan(20);
});
