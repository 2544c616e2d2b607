import { beforeEach, expect, test } from '@jest/globals';
import type { Task } from '../policies/policy.js';
import { steadyCompany } from './company.js';
import { RunLog } from './run-log.js';

const task = (id: string): Task => ({
  ...{ id, function: `/guest/${id[0]}`, version: '0.0.1', namespace: 'guest', batch: 1, gpus: 1 },
  ...{ memoryMiB: 100, arrivedAt: 0, class: 'inference' },
});

let log: RunLog;
beforeEach(() => {
  log = new RunLog();
});

const began = (id: string, startMs: number, gpu = 'GPU-0', alsoOn: string[] = []): void =>
  log.began(id, {
    ...{ task: task(id), gpu: { id: gpu, type: 'a100-40', mode: 'mps' }, alsoOn, share: 0.5, startMs },
    ...{ startedAt: startMs, isWarm: true, hasStrangers: false },
  });
const beside = (id: string, endMs: number): [string, number][] | undefined =>
  log.end(id, endMs)?.beside.map((one) => [one.task.id, one.part]);

test('a run knows who was beside it on its GPU, and for how long', () => {
  began('a1', 0);
  began('b1', 50);
  began('c1', 0, 'GPU-1');
  expect(beside('b1', 75)).toEqual([['a1', 1]]);
  began('b2', 75);
  expect(log.end('a1', 100)).toMatchObject({
    ...{ share: 0.5, ranMs: 100, isWarm: true },
    beside: [{ part: 0.25 }, { part: 0.25 }],
  });
  expect(beside('c1', 100)).toEqual([]);
  expect(beside('b2', 100)).toEqual([['a1', 1]]);
  expect(beside('b2', 100)).toBeUndefined();
});

test('one on several GPUs is beside those of each', () => {
  began('a1', 0, 'GPU-0', ['GPU-1']);
  began('b1', 0, 'GPU-1');
  expect(beside('b1', 10)).toEqual([['a1', 1]]);
  expect(beside('a1', 10)).toEqual([['b1', 1]]);
});

test('one that never came to run is beside nobody', () => {
  began('a1', 0);
  began('b1', 0);
  log.dropped('b1');
  expect(beside('a1', 10)).toEqual([]);
});

test('company is steady where one run followed the other of the same function', () => {
  began('a1', 0);
  began('b1', 0);
  began('c1', 0);
  log.end('b1', 48);
  began('b2', 52);
  const run = log.end('a1', 100)!;
  expect(steadyCompany(run)?.map((one) => one.task.function)).toEqual(['/guest/b', '/guest/c']);
});

test('company that came late or left early is none', () => {
  began('a1', 0);
  began('b1', 30);
  expect(steadyCompany(log.end('a1', 100)!)).toBeUndefined();
  began('a2', 100);
  log.end('b1', 105);
  expect(steadyCompany(log.end('a2', 200)!)).toEqual([]);
});
