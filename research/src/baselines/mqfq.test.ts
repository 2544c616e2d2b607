// MQFQ-Sticky: fairness of unequal functions, stickiness, and the bound on tasks of a GPU.
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { dividedSms, gpuOf, taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { Task } from '@gpuwhisk/gpu/view/view';
import './register.js';

const timer = { kind: 'timer' } as const;

function policyWith(settings: { slots?: number; overrunMs?: number } = {}): Policy {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  return makePolicy({ base: 'mqfq-sticky', settings }, needs);
}

const tasksOf = (name: string, count: number, changes: Partial<Task>): Task[] =>
  Array.from({ length: count }, (_, at) => {
    return taskOf(`${name}${at}`, { function: `/a/${name}`, memoryMiB: 10, ...changes });
  });

/** The tasks in the order in which they start on one GPU, one after the other; the policy hears of each run. */
function servedBy(policy: Policy, tasks: readonly Task[], count: number): Task[] {
  const waiting = new Map(tasks.map((task) => [task.id, task]));
  return Array.from({ length: count }, (_, at) => {
    const { starts } = policy.decide(
      viewOf({ at: 1000 + at, gpus: [gpuOf('g')], waiting: [...waiting.values()] }),
      timer,
    );
    expect(starts).toHaveLength(1);
    const task = waiting.get(starts[0]!.task)!;
    waiting.delete(task.id);
    const gpu = { id: 'g', gpuType: 't', mode: 'mps' } as const;
    policy.observe?.({ task, gpu, share: 1, ranMs: task.soloMs!, beside: [] });
    return task;
  });
}

const serviceOf = (tasks: readonly Task[], name: string): number =>
  tasks.reduce((sum, task) => sum + (task.function === `/a/${name}` ? task.soloMs! : 0), 0);

test('functions of unequal load have equal time, to within T and a run, as long as both have work', () => {
  const overrunMs = 500;
  const policy = policyWith({ slots: 1, overrunMs });
  // A flood of short tasks that came first, and fewer long ones.
  const tasks = [...tasksOf('flood', 400, { soloMs: 20 }), ...tasksOf('long', 30, { soloMs: 200, arrivedAt: 500 })];
  const served = servedBy(policy, tasks, 200);
  for (let upTo = 1; upTo <= served.length; upTo += 1) {
    const sofar = served.slice(0, upTo);
    expect(Math.abs(serviceOf(sofar, 'flood') - serviceOf(sofar, 'long'))).toBeLessThanOrEqual(overrunMs + 200);
  }
});

test('a function stays in turn until it is T ahead, so that it is switched less often than with T = 0', () => {
  const switches = (overrunMs: number): number => {
    const tasks = ['a', 'b', 'c'].flatMap((name) => tasksOf(name, 40, { soloMs: 50 }));
    const served = servedBy(policyWith({ slots: 1, overrunMs }), tasks, 100);
    return served.filter((task, at) => at > 0 && task.function !== served[at - 1]!.function).length;
  };
  expect(switches(0)).toBeGreaterThan(60);
  expect(switches(1000)).toBeLessThan(15);
});

test('among functions within T, one with an instance that idles goes first', () => {
  const idle = [{ function: '/a/b', namespace: 'a', share: 1, memoryMiB: 10 }];
  const waiting = ['a', 'b', 'c'].flatMap((name, at) => tasksOf(name, 1, { soloMs: 50, arrivedAt: at }));
  const view = viewOf({ at: 9, gpus: [gpuOf('g', { idle })], waiting });
  expect(
    policyWith({ slots: 1 })
      .decide(view, timer)
      .starts.map(({ task }) => task),
  ).toEqual(['b0']);
});

test('a function that had nothing to do has no credit for that time', () => {
  const policy = policyWith({ slots: 1, overrunMs: 100 });
  const tasks = (name: string, count: number): Task[] => tasksOf(name, count, { soloMs: 100 });
  servedBy(policy, [...tasks('a', 5), ...tasks('b', 5)], 10);
  // For five seconds there is work of the one alone.
  servedBy(policy, tasks('a', 60), 50);
  const served = servedBy(policy, [...tasks('a', 40), ...tasks('b', 40)], 20);
  expect(serviceOf(served, 'a')).toBeGreaterThanOrEqual(800);
  expect(serviceOf(served, 'b')).toBeGreaterThanOrEqual(800);
});

test('has at most D tasks on a GPU, each with all of it, and tells why others wait', () => {
  const gpus: ReportedPlace[] = [gpuOf('g0'), gpuOf('g1')];
  const waiting = ['a', 'b', 'c'].flatMap((name) => tasksOf(name, 10, { soloMs: 50 }));
  const { starts, order, rejected } = policyWith({ slots: 3 }).decide(viewOf({ at: 9, gpus, waiting }), timer);
  const here = (id: string): number => starts.filter(({ gpu }) => gpu === id).length;
  expect([here('g0'), here('g1'), starts.every(({ share }) => share === 1)]).toEqual([3, 3, true]);
  expect([order.length, new Set(rejected.map(({ task }) => task)).size]).toEqual([24, 24]);
});

test('a function that fits on no GPU does not hold others back', () => {
  const waiting = [...tasksOf('large', 3, { memoryMiB: 1e6 }), ...tasksOf('small', 3, { arrivedAt: 1 })];
  const policy = policyWith({ slots: 8, overrunMs: 0 });
  const { starts, order } = policy.decide(viewOf({ at: 9, gpus: [gpuOf('g')], waiting }), timer);
  expect([starts.length, order]).toEqual([3, ['large0', 'large1', 'large2']]);
});

test('decides the same after its state was saved and restored', () => {
  const [one, other] = [policyWith({ slots: 1, overrunMs: 100 }), policyWith({ slots: 1, overrunMs: 100 })];
  const tasks = ['a', 'b'].flatMap((name, at) => tasksOf(name, 40, { soloMs: 30 * (1 + at) }));
  servedBy(one, tasks, 17);
  other.restore?.(JSON.parse(JSON.stringify(one.saved?.())));
  const ids = (policy: Policy): string[] => servedBy(policy, tasks.slice(10), 20).map(({ id }) => id);
  expect(ids(other)).toEqual(ids(one));
});
