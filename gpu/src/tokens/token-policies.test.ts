import { expect, test } from '@jest/globals';
import { columnsBytes, columnsOver } from './token-machine.js';
import type { TokenColumns } from './token-machine.js';
import { guardedTokens } from './token-policies.js';
import type { MakeTokenPolicy } from './token-policies.js';

const places = 2;

/** The columns with a client in place 0 whose rate is known; place 1 is free. */
function columnsOfOne(): TokenColumns {
  const columns = columnsOver(new ArrayBuffer(columnsBytes(places)), 0, places);
  for (const [name, value] of Object.entries({ epoch: 1, request: 0.5, limit: 0.5, maxTokens: 1000 })) {
    columns[name as 'epoch'][0] = value;
  }
  return columns;
}

interface Guarded {
  columns: TokenColumns;
  faults: string[];
  step(): void;
}

function guardOf(make: MakeTokenPolicy, monotonicMs = () => 0): Guarded {
  const columns = columnsOfOne();
  const faults: string[] = [];
  const policy = guardedTokens(make, columns, { periodMs: 5, monotonicMs, onFault: (fault) => faults.push(fault) });
  return { columns, faults, step: () => policy.step() };
}

const issuing =
  (what: (columns: TokenColumns, steps: number) => void): MakeTokenPolicy =>
  (columns) => {
    let steps = 0;
    return { step: () => what(columns, (steps += 1)) };
  };

test('a sound token policy issues budgets, and changes nothing else', () => {
  const { columns, faults, step } = guardOf(
    issuing(({ budget, limit, epoch }) => {
      [budget[0], budget[1]] = [7, 8];
      [limit[0], epoch[1]] = [1, 9];
    }),
  );
  step();
  expect([[...columns.budget], [...columns.limit], [...columns.epoch]]).toEqual([
    [7, 0],
    [0.5, 0],
    [1, 0],
  ]);
  expect(faults).toEqual([]);
});

test('a client that came during a step keeps its first budget', () => {
  const board: { columns?: TokenColumns } = {};
  const guarded = guardOf(
    issuing(({ budget }) => {
      budget[0] = 7;
      const { columns } = board;
      if (columns !== undefined) [columns.epoch[0], columns.budget[0]] = [2, 50];
    }),
  );
  board.columns = guarded.columns;
  guarded.step();
  expect(guarded.columns.budget[0]).toBe(50);
});

const unsound: [string, MakeTokenPolicy, string][] = [
  [
    'cannot be made',
    () => {
      throw new Error('no licence');
    },
    'no licence',
  ],
  [
    'throws',
    issuing((_, steps) => {
      throw new Error(`at step ${steps}`);
    }),
    'at step 1',
  ],
  ['issues no number', issuing(({ budget }) => (budget[0] = NaN)), 'a budget is NaN'],
  ['issues less than a block', issuing(({ budget }) => (budget[0] = 0)), 'a budget is 0'],
  ['writes a rate that is none', issuing(({ budget, soloRate }) => ([budget[0], soloRate[0]] = [1, -1])), 'rate is -1'],
  ['writes a state that is none', issuing(({ budget, state }) => ([budget[0], state[0]] = [1, 4])), 'a state is 4'],
];

test.each(unsound)('where a token policy %s, dilu decides from then on', (_, make, reason) => {
  const { columns, faults, step } = guardOf(make);
  step();
  step();
  expect(faults).toEqual([expect.stringContaining(reason)]);
  // Its limit of half of its rate, as it is alone.
  expect(columns.budget[0]).toBe(500);
});

test('a token policy is given up when 20 steps in a row are late, not before', () => {
  let nowMs = 0;
  let slow = true;
  const late = issuing(({ budget }) => {
    nowMs += slow ? 6 : 1;
    budget[0] = 7;
  });
  const { columns, faults, step } = guardOf(late, () => nowMs);
  for (let count = 0; count < 19; count += 1) step();
  slow = false;
  step();
  slow = true;
  for (let count = 0; count < 19; count += 1) step();
  expect([faults, columns.budget[0]]).toEqual([[], 7]);
  step();
  expect([faults, columns.budget[0]]).toEqual([['20 steps in a row took longer than 5 ms'], 500]);
});
