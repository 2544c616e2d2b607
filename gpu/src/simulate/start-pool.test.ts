import { expect, test } from '@jest/globals';
import { StartPools } from './start-pool.js';

test('starts take processes of a pool until it is empty, and it makes one at a time', () => {
  const pools = new StartPools({ size: 2, injectMs: 10, coldMs: 1000, refillMs: 500 });
  const at = (ms: number): number => pools.take('gpu0', ms);
  expect([at(0), at(0), at(0)]).toEqual([10, 10, 1000]);
  // The first is ready at 500 ms, the second at 1000 ms.
  expect([at(499), at(500), at(500)]).toEqual([1000, 10, 1000]);
  expect([at(1000), at(1000)]).toEqual([10, 1000]);
});

test('places have pools of their own, and an empty pool stays empty', () => {
  const pools = new StartPools({ size: 1, injectMs: 10, coldMs: 1000, refillMs: 500 });
  expect([pools.take('gpu0', 0), pools.take('gpu1', 0), pools.take('gpu0', 0)]).toEqual([10, 10, 1000]);
  const none = new StartPools({ size: 0, injectMs: 10, coldMs: 1000, refillMs: 500 });
  expect(none.take('gpu0', 0)).toBe(1000);
});
