import { expect, test } from '@jest/globals';
import { selfTimes } from './profiles.js';

test('self time adds up the samples of all nodes of a function', () => {
  const frame = (functionName: string, lineNumber: number) => ({
    functionName,
    url: functionName === '(idle)' ? '' : 'file:///a.js',
    lineNumber,
  });
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('parse', 9) },
      { id: 2, callFrame: frame('(idle)', -1) },
      { id: 3, callFrame: frame('parse', 9) },
      { id: 4, callFrame: frame('', 20) },
    ],
    samples: [1, 2, 3, 4],
    timeDeltas: [1000, 2000, 4000, 500],
  };
  expect(selfTimes(profile)).toEqual([
    { name: 'parse', place: 'file:///a.js:10', ms: 5 },
    { name: '(idle)', place: '', ms: 2 },
    { name: '(anonymous)', place: 'file:///a.js:21', ms: 0.5 },
  ]);
});
