import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { isLinearizable, problemsOf, runsOneAfterTheOther } from './history-check.js';
import type { History, RegisterCall } from './history-check.js';

const call = (kind: RegisterCall['kind'], value: number, beganMs: number, endedMs: number): RegisterCall => ({
  ...{ register: 'r', kind, value, beganMs, endedMs },
});

describe('the check of histories', () => {
  test.each<[string, boolean, RegisterCall[]]>([
    ['a read of the last write', true, [call('write', 1, 0, 1), call('read', 1, 2, 3)]],
    ['a read of what was written over', false, [call('write', 1, 0, 1), call('write', 2, 2, 3), call('read', 1, 4, 5)]],
    ['a read of what was not written', false, [call('write', 1, 0, 1), call('read', 7, 2, 3)]],
    ['a write that is lost', false, [call('write', 1, 0, 1), call('read', 0, 2, 3)]],
    [
      'reads beside a write, old then new',
      true,
      [call('write', 1, 0, 9), call('read', 0, 1, 2), call('read', 1, 3, 4)],
    ],
    [
      'reads beside a write, new then old',
      false,
      [call('write', 1, 0, 9), call('read', 1, 1, 2), call('read', 0, 3, 4)],
    ],
    [
      'an unknown write that took effect late',
      true,
      [call('write', 1, 0, Infinity), call('write', 2, 1, 2), call('read', 2, 3, 4), call('read', 1, 5, 6)],
    ],
    ['an unknown write that never did', true, [call('write', 1, 0, Infinity), call('read', 0, 50, 60)]],
    [
      'an unknown write that took effect twice',
      false,
      [call('write', 1, 0, Infinity), call('read', 1, 3, 4), call('write', 2, 5, 6), call('read', 1, 7, 8)],
    ],
  ])('%s: %s', (_, expected, calls) => {
    expect(isLinearizable(calls, 0)).toBe(expected);
  });

  test('takes every history of a register that is one, and trips once a read is changed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const random = seededRandom(seed);
      const below = (count: number): number => random.uint32() % count;
      let value = 0;
      const calls = Array.from({ length: 150 }, (_, at): RegisterCall => {
        const kind = below(2) === 0 ? 'write' : 'read';
        if (kind === 'write') value = at + 1;
        const isUnknown = kind === 'write' && below(15) === 0;
        return call(kind, value, at * 10 - below(30), isUnknown ? Infinity : at * 10 + below(30));
      });
      expect([seed, isLinearizable(calls, 0)]).toEqual([seed, true]);
      const at = calls.findLastIndex(({ kind }) => kind === 'read');
      const changed = calls.with(at, { ...(calls[at] as RegisterCall), value: -1 });
      expect([seed, isLinearizable(changed, 0)]).toEqual([seed, false]);
    }
  });

  test('names what ran twice, what is lost, and what cannot have succeeded', () => {
    const history: History = {
      calls: [call('write', 1, 0, 1), call('read', 1, 2, 3)],
      accepted: ['a', 'b', 'c'],
      runs: ['a', 'b'],
      records: new Map([
        ['a', true],
        ['b', true],
        ['c', false],
      ]),
    };
    expect(problemsOf(history, 0)).toEqual([]);
    expect(problemsOf({ ...history, runs: ['a', 'b', 'a'] }, 0)).toEqual(['a ran 2 times']);
    expect(problemsOf({ ...history, accepted: ['d'] }, 0)).toEqual(['d was accepted and is lost']);
    expect(problemsOf({ ...history, runs: ['a'] }, 0)).toEqual(['b succeeded and did not run']);
    expect(problemsOf({ ...history, calls: [call('write', 1, 0, 1), call('read', 0, 2, 3)] }, 0)).toEqual([
      '2 calls of r are not linearizable',
    ]);
  });
});

test('runs of a job are one after the other, or the check trips', () => {
  expect(runsOneAfterTheOther(['a', 'a', 'b', 'b', 'c'])).toEqual(['a', 'b', 'c']);
  expect(() => runsOneAfterTheOther(['a', 'b', 'a'])).toThrow('run a went on beside run b');
});
