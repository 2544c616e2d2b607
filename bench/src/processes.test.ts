import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { cpuTime, descendantsOf, memoryOf, parseRollup, parseStat, readTree } from './processes.js';

const line =
  '42 (a (b) c) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 30 20 20 0 11 0 500 1000 200 18446744073709551615 1 1 0 0 0 0 0';

test('parseStat reads past a name with spaces and parentheses', () => {
  expect(parseStat(line)).toEqual({ pid: 42, parentPid: 7, cpuS: 2, endedChildrenCpuS: 0.5 });
});

test('parseStat throws for a line that is cut off', () => {
  expect(() => parseStat('42 (a) S 7')).toThrow('field');
});

test('descendants are children and their children, and no others', () => {
  const stat = (pid: number, parentPid: number) => ({ pid, parentPid, cpuS: 0, endedChildrenCpuS: 0 });
  const all = [stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1)];
  expect(descendantsOf(2, all).map(({ pid }) => pid)).toEqual([3, 4]);
});

test('processor time of ended children counts as the sandboxes’', () => {
  const one = (pid: number, cpuS: number, endedChildrenCpuS: number) => ({
    pid,
    parentPid: 1,
    cpuS,
    endedChildrenCpuS,
  });
  const tree = { root: one(1, 10, 1), descendants: [one(2, 3, 0.5), one(3, 4, 0)] };
  expect(cpuTime(tree)).toEqual({ serverS: 10, sandboxesS: 8.5 });
});

test('parseRollup reads kB as MiB', () => {
  const text =
    '00400000-7fff [rollup]\nRss:              2048 kB\nPss:              1024 kB\nPss_Dirty:         512 kB\nAnonymous:         512 kB\n';
  expect(parseRollup(text)).toEqual({ rssMiB: 2, pssMiB: 1, anonMiB: 0.5 });
});

test('a real process and its child are seen, and memory of one that is gone is 0', async () => {
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  const pid = child.pid as number;
  expect(readTree(process.pid).descendants.map((one) => one.pid)).toContain(pid);
  expect(memoryOf(pid).rssMiB).toBeGreaterThan(0);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(memoryOf(pid)).toEqual({ rssMiB: 0, pssMiB: 0, anonMiB: 0 });
  expect(() => readTree(pid)).toThrow('is gone');
});
