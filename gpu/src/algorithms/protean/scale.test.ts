import { expect, test } from '@jest/globals';
import { taskOf } from '../../testing/fixtures.js';
import { ArrivalCounts } from '../../view/function-log.js';
import type { FunctionState, InstanceState } from '../../view/view.js';
import { proteanScale, proteanScaleDefaults } from './scale.js';

const start = 100_000;
const of = (arrivals = new ArrivalCounts(), changes: Partial<FunctionState> = {}): FunctionState => {
  const task = taskOf('last', { batch: 8 });
  const share = { shareClass: 100 as const, smRequest: 1, smLimit: 1, memoryMiB: 1000 };
  const request = {
    action: '/a/f',
    namespace: 'a',
    isolation: 'shared' as const,
    share,
    gpus: 1,
    batch: 8,
    memoryMiB: 1000,
    isBounded: false,
  };
  return { task: { ...task, request }, arrivals, ...changes };
};
const instance = (id: string, tasks: readonly string[] = []): InstanceState => {
  const share = { request: 1, limit: 1, class: 1 };
  const known = { function: '/a/f', namespace: 'a', gpus: ['g0'], memoryMiB: 1000, share };
  return { id, ...known, tasks, state: tasks.length > 0 ? 'running' : 'idle', idleSince: start - Number(id.slice(1)) };
};

/** What is launched and retired at `at` with requests that wait and instances. */
function changes(
  scale: ReturnType<typeof proteanScale>,
  at: number,
  waiting: number,
  instances: InstanceState[],
  functions = [of()],
): [number, string[]] {
  const { task } = of();
  const tasks = Array.from({ length: waiting }, (_, i) => ({ ...task, id: `t${i}` }));
  const view = { at, waiting: tasks, functions, instances };
  const { launch, retire } = scale(view);
  return [launch.reduce((sum, { count }) => sum + count, 0), retire.map((one) => one.instance)];
}

test('wants an instance for each batch of the requests that wait and run', () => {
  const scale = proteanScale(proteanScaleDefaults);
  expect(changes(scale, start, 17, [])).toEqual([3, []]);
  expect(changes(scale, start, 16, [instance('i0', ['r0', 'r1'])])).toEqual([2, []]);
  expect(changes(scale, start, 6, [instance('i0', ['r0', 'r1'])])).toEqual([0, []]);
});

test('wants as many as the requests of a second that come while one runs', () => {
  const arrivals = new ArrivalCounts();
  for (let request = 0; request < 400; request += 1) arrivals.add(start - 1000 + request);
  const scale = proteanScale(proteanScaleDefaults);
  expect(changes(scale, start, 0, [], [of(arrivals, { runMs: 100 })])).toEqual([5, []]);
});

test('retires what was too much for ten minutes, the longest idle first, and no earlier', () => {
  const scale = proteanScale(proteanScaleDefaults);
  const there = [instance('i1'), instance('i3'), instance('i2')];
  const look = (second: number, waiting: number): string[] => changes(scale, start + second * 1000, waiting, there)[1];
  for (let second = 0; second < 600; second += 1) expect(look(second, second === 300 ? 10 : 0)).toEqual([]);
  // At its least the surplus was one.
  expect(look(600, 0)).toEqual(['i3']);
  expect(look(601, 0)).toEqual([]);
});

test('the time of a surplus begins again after missed ticks, and where the clock was set back', () => {
  const scale = proteanScale({ surplusS: 20 });
  const look = (second: number): string[] => changes(scale, start + second * 1000, 0, [instance('i1')])[1];
  for (let second = 0; second < 20; second += 1) expect(look(second)).toEqual([]);
  expect(look(40)).toEqual([]);
  expect(look(30)).toEqual([]);
  for (let second = 31; second < 50; second += 1) expect(look(second)).toEqual([]);
  expect(look(50)).toEqual(['i1']);
});

test('retires instances of functions that are not in the view', () => {
  const scale = proteanScale({ surplusS: 1 });
  expect(changes(scale, start, 0, [instance('i1')], [])).toEqual([0, []]);
  expect(changes(scale, start + 1000, 0, [instance('i1')], [])).toEqual([0, ['i1']]);
});
