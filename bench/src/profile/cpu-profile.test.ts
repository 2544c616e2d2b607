import { expect, test } from '@jest/globals';
import { selfTimes, stackTree, type CpuProfile } from './cpu-profile.js';
import { flameGraph } from './flame-graph.js';
import { timeByPart } from './parts.js';
import { sourcePlaces } from './source-places.js';

const frame = (functionName: string, url: string, lineNumber: number): CpuProfile['nodes'][number]['callFrame'] => ({
  functionName,
  url,
  lineNumber,
  columnNumber: 0,
});
const own = (path: string): string => `file:///repository/${path}`;
const placeOf = sourcePlaces('/repository');
const all = { fromUs: 0, toUs: Infinity };

/** Samples in a native write below the connection, and in one below Node's HTTP server. */
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', '', -1), children: [2, 3, 6, 8] },
    { id: 2, callFrame: frame('(idle)', '', -1) },
    { id: 3, callFrame: frame('send', own('invoker/src/containers/a.ts'), 9), children: [4] },
    { id: 4, callFrame: frame('write', 'node:net', 99), children: [5] },
    { id: 5, callFrame: frame('writeBuffer', '', -1) },
    { id: 6, callFrame: frame('', own('common/src/b.ts'), 20), children: [7] },
    { id: 7, callFrame: frame('send', own('invoker/src/containers/a.ts'), 9) },
    { id: 8, callFrame: frame('writeAnswer', own('controller/src/http/answer.ts'), 1), children: [9] },
    { id: 9, callFrame: frame('end', 'node:_http_outgoing', 1), children: [10] },
    { id: 10, callFrame: frame('writev', '', -1) },
  ],
  samples: [2, 3, 5, 7, 6, 10],
  timeDeltas: [1000, 2000, 4000, 500, 250, 3000],
  startTime: 10_000,
};
const tree = stackTree(profile, all, placeOf);

test('self time adds up all places in the tree; a native function is told apart by its caller', () => {
  expect(selfTimes(tree).filter(({ ms }) => ms > 0)).toEqual([
    { name: 'writeBuffer', place: 'from send invoker/src/containers/a.ts:10', ms: 4 },
    { name: 'writev', place: 'from writeAnswer controller/src/http/answer.ts:2', ms: 3 },
    { name: 'send', place: 'invoker/src/containers/a.ts:10', ms: 2.5 },
    { name: '(idle)', place: '', ms: 1 },
    { name: '(anonymous)', place: 'common/src/b.ts:21', ms: 0.25 },
  ]);
});

test('every sample has a part, and those that no rule names are shown as other', () => {
  expect(Object.fromEntries(timeByPart(tree))).toEqual({ idle: 1000, frame: 6500, socket: 3000, other: 250 });
});

test('only samples within the window count', () => {
  const window = { fromUs: 13_000, toUs: 17_500 };
  expect(Object.fromEntries(timeByPart(stackTree(profile, window, placeOf)))).toEqual({ frame: 4500 });
});

test('a flame graph shows callers above callees, by their share of the time at work', () => {
  const svg = flameGraph('<title>', tree);
  expect(svg).toContain('&lt;title&gt;');
  expect(svg).toContain('<title>send invoker/src/containers/a.ts:10: 61.5 %, frame</title>');
  expect(svg).toContain('<title>writev: 30.8 %, socket</title>');
  expect(svg).not.toContain('(idle)');
});
