import { beforeEach, describe, expect, test } from '@jest/globals';
import { FunctionFaults } from './function-faults.js';

const hourMs = 3_600_000;
let nowMs: number;
let changes: number;
let faults: FunctionFaults;
const newFaults = (): FunctionFaults => new FunctionFaults({ now: () => nowMs }, () => void (changes += 1));
beforeEach(() => {
  [nowMs, changes] = [100 * hourMs, 0];
  faults = newFaults();
});

/** A row with a fault of now, beside which these versions ran. */
const rowOf = (names: readonly string[], at = nowMs) => ({
  faults: [{ at, place: 'GPU-0', functions: names.map((name) => ({ action: `/guest/${name}`, version: '1' })) }],
});
const stateOf = (name: string): string | undefined => faults.alone(`/guest/${name}`, '1')?.state;
const states = (...names: string[]): (string | undefined)[] => names.map(stateOf);
const ranAlone = (name: string, times: number): void => {
  for (let run = 0; run < times; run += 1) faults.ranAlone(`/guest/${name}`, '1');
};

test('one that was alone runs alone for a day, another version of it does not', () => {
  faults.seen(rowOf(['a']));
  expect(faults.alone('/guest/a', '1')).toEqual({ until: nowMs + 24 * hourMs, state: 'faulting' });
  expect(faults.alone('/guest/a', '2')).toBeUndefined();
  ranAlone('a', 100);
  nowMs += 23 * hourMs;
  expect(stateOf('a')).toBe('faulting');
  nowMs += 2 * hourMs;
  expect([stateOf('a'), faults.all()]).toEqual([undefined, []]);
});

describe('of several that ran', () => {
  beforeEach(() => faults.seen(rowOf(['a', 'b'])));

  test('all are suspects until five runs alone have succeeded', () => {
    expect(states('a', 'b', 'c')).toEqual(['suspect', 'suspect', undefined]);
    ranAlone('a', 4);
    expect(stateOf('a')).toBe('suspect');
    ranAlone('a', 1);
    expect(states('a', 'b')).toEqual([undefined, 'suspect']);
  });

  test('the one that faults alone is it', () => {
    nowMs += 1000;
    faults.seen(rowOf(['b']));
    expect(states('a', 'b')).toEqual(['suspect', 'faulting']);
  });

  test('the one that is there again is it, though it has run alone meanwhile; its new neighbour is no suspect', () => {
    ranAlone('a', 5);
    ranAlone('b', 5);
    nowMs += hourMs;
    faults.seen(rowOf(['b', 'c']));
    expect(states('a', 'b', 'c')).toEqual([undefined, 'faulting', undefined]);
  });

  test('a day later it is no more than a suspect', () => {
    nowMs += 25 * hourMs;
    faults.seen(rowOf(['b', 'c']));
    expect(states('b', 'c')).toEqual(['suspect', 'suspect']);
  });

  test('a fault of the same ones right after it, as runs are repeated, and the same row again tell nothing new', () => {
    const row = rowOf(['a', 'b']);
    nowMs += 2000;
    const before = changes;
    faults.seen(row);
    faults.seen(rowOf(['b', 'a']));
    expect([states('a', 'b'), changes]).toEqual([['suspect', 'suspect'], before]);
  });
});

test('what was learned is kept, and a row that was taken before is not taken again', () => {
  const row = rowOf(['a', 'b']);
  faults.seen(row);
  ranAlone('a', 5);
  const text = faults.text();
  faults = newFaults();
  faults.restore(text);
  faults.seen(row);
  expect(states('a', 'b')).toEqual([undefined, 'suspect']);
  expect(() => faults.restore('[{"function": 1}]')).toThrow(RangeError);
});

test('a function that an operator has forgotten runs with others', () => {
  faults.seen(rowOf(['a']));
  expect([faults.forget('/guest/a'), stateOf('a'), faults.forget('/guest/a')]).toEqual([true, undefined, false]);
});

test('rows with thousands of versions are bounded', () => {
  for (let at = 0; at < 3000; at += 1) faults.seen(rowOf([`f${at}`], nowMs - at));
  expect(faults.all()).toHaveLength(1000);
});
