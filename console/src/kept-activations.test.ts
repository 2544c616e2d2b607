import { expect, test } from '@jest/globals';
import type { Brief } from './activation-model.js';
import { KeptActivations, fillGap } from './kept-activations.js';

/** An activation that began at `start`. */
const at = (start: number): Brief => ({
  ...{ activationId: `id${start}`, namespace: 'guest', name: 'hello', version: '0.0.1', annotations: [] },
  start,
});
const from = (newest: number, count: number): Brief[] => Array.from({ length: count }, (_, less) => at(newest - less));
const starts = ({ rows }: KeptActivations): number[] => rows.map(({ start }) => start);

test('activations are kept once, the newest first, and the oldest are dropped', () => {
  const kept = new KeptActivations(4);
  kept.add(from(3, 3));
  const { rows } = kept;
  expect(kept.add(from(3, 2))).toEqual([]);
  expect(kept.rows).toBe(rows);
  expect(kept.add([at(7), at(3), at(5)]).map(({ start }) => start)).toEqual([7, 5]);
  expect(starts(kept)).toEqual([7, 5, 3, 2]);
  expect([kept.has('id1'), kept.has('id7')]).toEqual([false, true]);
});

test('activations between the kept and the newest ones are read', async () => {
  const kept = new KeptActivations(100);
  const asked: number[] = [];
  const read = ({ upto, skip }: { upto: number; skip: number }) => {
    asked.push(upto);
    return Promise.resolve(from(upto - skip, 5));
  };
  kept.add(from(10, 5));
  const newest = from(30, 5);
  kept.add(newest);
  await fillGap(kept, newest, 100, read);
  expect(asked).toEqual([26, 22, 18, 14]);
  expect(starts(kept)).toEqual(from(30, 25).map(({ start }) => start));

  const far = from(200, 5);
  kept.add(far);
  await fillGap(kept, far, 10, read);
  expect(asked.slice(4)).toEqual([196, 192]);
});
