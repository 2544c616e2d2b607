import { expect, test } from '@jest/globals';
import { gpuOf } from '../../testing/fixtures.js';
import { ledgerWith } from '../../testing/views.js';
import { alikeGroups, gangOf } from './gangs.js';

const gpus = [
  gpuOf('a0', { node: 'a' }),
  gpuOf('b0', { node: 'b' }),
  gpuOf('b1', { node: 'b', type: 'other' }),
  gpuOf('b2', { node: 'b' }),
  gpuOf('c0', { node: 'c', mode: 'timeslice' }),
  gpuOf('c1', { node: 'c' }),
];
const accounts = ledgerWith(gpus).ledger.accounts();
const gang = (count: number): string[] | undefined =>
  gangOf(accounts, count, ({ place }) => place)?.map(({ id }) => id);

test('a gang is of one node, one type and one mode, the first that is complete', () => {
  expect([gang(1), gang(2), gang(3)]).toEqual([['a0'], ['b0', 'b2'], undefined]);
  expect(gangOf([], 1, () => accounts[0]!.place)).toBeUndefined();
});

test('groups go in the order of their first places', () => {
  const ids = alikeGroups([...accounts].reverse(), ({ place }) => place).map((group) => group.map(({ id }) => id));
  expect(ids).toEqual([['c1'], ['c0'], ['b2', 'b0'], ['b1'], ['a0']]);
});
