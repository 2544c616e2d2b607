import { expect, test } from '@jest/globals';
import { selfTimes } from './profile.js';

const frame = (
  functionName: string,
  url: string,
  lineNumber: number,
): { functionName: string; url: string; lineNumber: number } => ({ functionName, url, lineNumber });

test('self time adds up all places in the tree; a native function is told apart by its caller', () => {
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('(root)', '', -1), children: [2, 3, 6] },
      { id: 2, callFrame: frame('(idle)', '', -1) },
      { id: 3, callFrame: frame('send', 'file:///a.js', 9), children: [4] },
      { id: 4, callFrame: frame('write', 'node:net', 99), children: [5] },
      { id: 5, callFrame: frame('writeBuffer', '', -1) },
      { id: 6, callFrame: frame('', 'file:///b.js', 20), children: [7] },
      { id: 7, callFrame: frame('send', 'file:///a.js', 9) },
    ],
    samples: [2, 3, 5, 7, 6],
    timeDeltas: [1000, 2000, 4000, 500, 250],
  };
  expect(selfTimes(profile).filter(({ ms }) => ms > 0)).toEqual([
    { name: 'writeBuffer', place: 'from send file:///a.js:10', ms: 4 },
    { name: 'send', place: 'file:///a.js:10', ms: 2.5 },
    { name: '(idle)', place: '', ms: 1 },
    { name: '(anonymous)', place: 'file:///b.js:21', ms: 0.25 },
  ]);
});
