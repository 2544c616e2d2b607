import { expect, test } from '@jest/globals';
import { parseUsage, usedBetween, type Threads } from './usage.js';

const usage = (cpuUs: number): { cpuUs: number; reads: number; writes: number; waits: number } => ({
  cpuUs,
  reads: 2 * cpuUs,
  writes: 1,
  waits: 0,
});

test('usage of a thread is read from the fields of /proc', () => {
  const io = 'rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\n';
  const status = 'Name:\tnode\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t4\n';
  expect(parseUsage('4500000 2 3\n', io, status)).toEqual({ cpuUs: 4500, reads: 7, writes: 6, waits: 5 });
  expect(() => parseUsage('1 2 3', 'rchar: 9', status)).toThrow("no field 'syscr'");
});

test('usage between two moments is summed by part; a new thread counts from its start', () => {
  const before: Threads = new Map([
    [1, { part: 'server', usage: usage(10) }],
    [2, { part: 'runtime', usage: usage(5) }],
  ]);
  const after: Threads = new Map([
    [1, { part: 'server', usage: usage(15) }],
    [3, { part: 'runtime', usage: usage(4) }],
  ]);
  const used = usedBetween(before, after);
  expect(used.get('server')).toEqual({ cpuUs: 5, reads: 10, writes: 0, waits: 0 });
  expect(used.get('runtime')).toEqual({ cpuUs: 4, reads: 8, writes: 1, waits: 0 });
  expect(used.get('proxy')).toEqual({ cpuUs: 0, reads: 0, writes: 0, waits: 0 });
});
