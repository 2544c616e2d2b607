import { expect, test } from '@jest/globals';
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';
import { addBook, charge, chargeBoot, newCostBook } from './costs.js';
import type { CostBook } from './costs.js';

const hourMs = 3_600_000;
const use = (changes: Partial<NodeUse>): NodeUse => ({
  ...{ start: 's1', at: 0, upMs: hourMs, devices: 2, market: 'spot', pricePerHour: 10, used: [] },
  ...changes,
});
const costs = (book: CostBook): Record<string, number> =>
  Object.fromEntries(Array.from(book.functions.values(), ({ action, cost }) => [action, cost]));
const spot = (book: CostBook) => book.markets.get('spot');

test('functions are charged their part of the GPU-seconds, and the rest is idle', () => {
  const book = newCostBook();
  charge(
    book,
    use({
      used: [
        ['alice', '/a/f', hourMs / 2],
        ['bob', '/a/f', hourMs / 10],
      ],
    }),
    undefined,
  );
  expect([...book.functions.values()]).toEqual([
    { namespace: 'alice', action: '/a/f', gpuSeconds: 1800, cost: 2.5 },
    { namespace: 'bob', action: '/a/f', gpuSeconds: 360, cost: 0.5 },
  ]);
  expect(spot(book)).toEqual({ hours: 1, cost: 10, idle: 7, boot: 0 });
});

test('only what came since is charged, all of another start, and nothing where counts go back', () => {
  const book = newCostBook();
  let seen = charge(book, use({ upMs: hourMs, used: [['a', '/f', hourMs]] }), undefined);
  seen = charge(book, use({ upMs: 2 * hourMs, used: [['a', '/f', hourMs]] }), seen);
  expect([costs(book)['/f'], spot(book)?.idle]).toEqual([5, 15]);
  seen = charge(book, use({ start: 's2', upMs: hourMs, used: [['a', '/f', hourMs]] }), seen);
  expect([costs(book)['/f'], spot(book)?.cost]).toEqual([10, 30]);
  const before = structuredClone(book);
  expect(charge(book, use({ start: 's2', upMs: 5, used: [['a', '/f', 7]] }), seen)).toEqual(seen);
  expect(book).toEqual(before);
});

test('shares beyond the GPUs divide the whole cost, and senseless bills cost nothing', () => {
  const book = newCostBook();
  charge(
    book,
    use({
      used: [
        ['a', '/f', 3 * hourMs],
        ['a', '/g', hourMs],
      ],
    }),
    undefined,
  );
  expect([costs(book), spot(book)?.idle]).toEqual([{ '/f': 7.5, '/g': 2.5 }, 0]);
  for (const pricePerHour of [NaN, -1, Infinity]) {
    const other = newCostBook();
    charge(other, use({ pricePerHour, used: [['a', '/f', hourMs]] }), undefined);
    expect([costs(other), spot(other)?.cost]).toEqual([{ '/f': 0 }, 0]);
  }
});

test('the time before the first report is stated apart, and books add up', () => {
  const book = newCostBook();
  chargeBoot(book, 'spot', 10, hourMs / 4);
  expect(spot(book)).toEqual({ hours: 0.25, cost: 2.5, idle: 0, boot: 2.5 });
  const sum = newCostBook();
  addBook(sum, book);
  addBook(sum, book);
  expect(spot(sum)?.cost).toBe(5);
});
