import { beforeEach, expect, test } from '@jest/globals';
import type { Task } from '../../view/view.js';
import { averageNeighbours, steadyNeighbours, RunLog } from './run-log.js';

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
    ...{ task: task(id), gpu: { id: gpu, gpuType: 'a100-40', mode: 'mps' }, alsoOn, share: 0.5, startMs },
    ...{ startedAt: startMs, isWarm: true, hasUnknownNeighbours: false },
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
    // Two runs of one function, one after the other.
    beside: [{ part: 0.5 }],
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

test('one that never came to run is no neighbour', () => {
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
  expect(steadyNeighbours(run)?.map((one) => one.task.function)).toEqual(['/guest/b', '/guest/c']);
});

test('a long run knows its company, however many ran beside it', () => {
  began('a1', 0);
  for (let at = 0; at < 5000; at += 1) {
    began(`b${at}`, at);
    log.end(`b${at}`, at + 1);
  }
  expect(steadyNeighbours(log.end('a1', 5000)!)?.map((one) => one.task.function)).toEqual(['/guest/b']);
});

test('one beside which too many different ones ran has unknown neighbours', () => {
  began('a1', 0);
  for (let at = 0; at < 300; at += 1) {
    log.began(`b${at}`, {
      ...{ task: { ...task('b'), version: `0.0.${at}` }, gpu: { id: 'GPU-0', gpuType: 'a100-40', mode: 'mps' } },
      ...{ alsoOn: [], share: 0.5, startMs: at, startedAt: at, isWarm: true, hasUnknownNeighbours: false },
    });
    log.end(`b${at}`, at + 1);
  }
  expect(log.end('a1', 300)).toMatchObject({ hasUnknownNeighbours: true });
});

test('one that was lost counts as an unknown neighbour, and is no neighbour from then on', () => {
  for (const id of ['a1', 'b1']) began(id, 0);
  began('c1', 0, 'GPU-1');
  log.lost('b1');
  expect(log.end('b1', 50)).toBeUndefined();
  expect(log.end('a1', 100)).toMatchObject({ hasUnknownNeighbours: true, beside: [] });
  expect(log.end('c1', 100)).toMatchObject({ hasUnknownNeighbours: false });
});

test('company is steady only if all of it together misses little', () => {
  const beside = ['b', 'c', 'd'].map((id) => ({ task: task(id), share: 0.5, part: 0.94 }));
  expect(steadyNeighbours({ beside: beside.slice(0, 1) })).toHaveLength(1);
  expect(steadyNeighbours({ beside })).toBeUndefined();
});

test('what was there for part of the time counts for that part, of what its share lets it use', () => {
  const features = { smUtil: 0.8, dramUtil: 0.4, l2Util: 0.2 };
  const one = { task: { ...task('b'), features }, share: 0.4, part: 0.5 };
  const unseen = { smUtil: 1, dramUtil: 1, l2Util: 1 };
  expect(averageNeighbours({ beside: [one] }, unseen)).toEqual([
    { features: { smUtil: 0.2, dramUtil: 0.1, l2Util: 0.05 }, share: 1 },
  ]);
  const bare = { ...one, task: { ...task('b'), features: { smUtil: 0.8 } } };
  expect(averageNeighbours({ beside: [bare] }, unseen)).toEqual([{ features: { smUtil: 0.2 }, share: 1 }]);
  const others = averageNeighbours({ beside: [{ task: task('c'), share: 1, part: 1.5 }] }, unseen);
  expect(others.map(({ features: { smUtil } }) => smUtil)).toEqual([0.75, 0.75]);
});

test('company that came late or left early is none', () => {
  began('a1', 0);
  began('b1', 30);
  expect(steadyNeighbours(log.end('a1', 100)!)).toBeUndefined();
  began('a2', 100);
  log.end('b1', 105);
  expect(steadyNeighbours(log.end('a2', 200)!)).toEqual([]);
});
