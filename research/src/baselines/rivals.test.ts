// What each strong rival is defined by.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { randomTask } from '@gpuwhisk/gpu/testing/random-world';
import { dividedSms, gpuOf, profiledTask, runningTask, taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { Start } from '@gpuwhisk/gpu/view/decision';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { baselines, rivals } from './register.js';

const timer = { kind: 'timer' } as const;

function startsOf(name: string, waiting: readonly Task[], gpus: ReportedPlace[], at = 0): readonly Start[] {
  const policy = makePolicy(name, { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) });
  return policy.decide(viewOf({ at, gpus, waiting }), timer).starts;
}

const names = (starts: readonly Start[]): string[] => starts.map(({ task }) => task);

/** Forty tasks, every other one with an SLO. */
function drawnTasks(seed: number): Task[] {
  const random = seededRandom(seed);
  return Array.from({ length: 40 }, (_, at) => {
    const { sloMs, ...task } = randomTask(random, `t${at}`, 0);
    return { ...task, gpus: 1, ...(at % 2 === 0 && { sloMs: 1e6 + (sloMs ?? 5000) }) };
  });
}

test('each baseline is in one group of rivals', () => {
  expect(Object.values(rivals).flat().sort()).toEqual([...baselines].sort());
});

describe.each([1, 2, 3, 4])('strict-first-%i', (most) => {
  test.each([1, 2, 3])('has at most so many on a GPU, and no best effort while strict work fits (seed %i)', (seed) => {
    const waiting = drawnTasks(seed);
    const resident = runningTask(taskOf('resident', { function: '/a/r', memoryMiB: 500 }), 1);
    const gpus = [gpuOf('g0', { running: [resident] }), gpuOf('g1'), gpuOf('g2', { memoryMiB: 2000 })];
    const starts = startsOf(`strict-first-${most}`, waiting, gpus);
    const byId = new Map(waiting.map((task) => [task.id, task]));
    for (const { id, running, memoryMiB } of gpus) {
      const here = starts.filter(({ gpu }) => gpu === id).map(({ task }) => byId.get(task));
      expect(here.length + running.length).toBeLessThanOrEqual(most);
      const left = memoryMiB - running.reduce((sum, { task }) => sum + task.memoryMiB, 0);
      expect(
        here.reduce((sum, task) => sum + (task!.memoryMiB > 0 ? task!.memoryMiB : memoryMiB), 0),
      ).toBeLessThanOrEqual(left);
    }
    for (const { share } of starts) expect(share).toBeGreaterThan(0);
    // With memory for all, every strict task goes before any best effort.
    const small = waiting.map((task) => ({ ...task, memoryMiB: 10 }));
    const open = startsOf(`strict-first-${most}`, small, [gpuOf('g0')]);
    expect(open).toHaveLength(most);
    for (const { task } of open) expect(byId.get(task)?.sloMs).toBeDefined();
  });

  test('gives each the whole of the GPU with the fewest', () => {
    const waiting = Array.from({ length: 3 * most }, (_, at) => taskOf(`t${at}`, { arrivedAt: at, memoryMiB: 10 }));
    const starts = startsOf(`strict-first-${most}`, waiting, [gpuOf('g0'), gpuOf('g1')], 99);
    expect(names(starts)).toEqual(waiting.slice(0, 2 * most).map(({ id }) => id));
    expect(starts.map(({ gpu, share }) => `${gpu} ${share}`)).toEqual(starts.map((_, at) => `g${at % 2} 1`));
  });

  test('serves the earliest deadline first, and what cannot meet its SLO as best effort', () => {
    const waiting = [
      taskOf('best effort', { arrivedAt: 0 }),
      taskOf('late', { sloMs: 500, soloMs: 600, arrivedAt: 1 }),
      taskOf('later', { sloMs: 2000, soloMs: 100, arrivedAt: 2 }),
      taskOf('soon', { sloMs: 900, soloMs: 100, arrivedAt: 3 }),
    ].map((task) => ({ ...task, memoryMiB: 10 }));
    const order = ['soon', 'later', 'best effort', 'late'];
    expect(names(startsOf(`strict-first-${most}`, waiting, [gpuOf('g0')], 3))).toEqual(order.slice(0, most));
  });
});

describe('static-4g3g', () => {
  const slice = (id: string, profile: string, memoryMiB: number): ReportedPlace =>
    gpuOf(id, { type: `a100-40:${profile}`, mode: 'mig', device: 'd0', memoryMiB });
  const slices = [slice('small', '3g.20gb', 19_000), slice('large', '4g.20gb', 19_000)];

  test('takes the larger slice that is free, then the other one, each for one task', () => {
    const waiting = [0, 1, 2].map((at) => taskOf(`t${at}`, { arrivedAt: at, ...(at === 2 && { sloMs: 1e6 }) }));
    const starts = startsOf('static-4g3g', waiting, slices, 9);
    expect(starts.map(({ task, gpu }) => `${task} ${gpu}`)).toEqual(['t2 large', 't0 small']);
  });

  test('goes by memory, and works where GPUs are whole or cut otherwise', () => {
    const other = [slice('one', '1g.5gb', 4800), ...slices, gpuOf('whole', { memoryMiB: 38_000 })];
    const tasks = [taskOf('a', { memoryMiB: 30_000 }), taskOf('b', { memoryMiB: 1000 }), taskOf('c'), taskOf('d')];
    const starts = startsOf('static-4g3g', tasks, other);
    expect(starts.map(({ gpu }) => gpu)).toEqual(['whole', 'large', 'small', 'one']);
  });
});

test('shortest-first-2 starts the two shortest on each GPU', () => {
  const waiting = [900, 30, 500, 10, 700].map((soloMs, at) => profiledTask(`${soloMs}`, soloMs, 1, { arrivedAt: at }));
  const starts = startsOf('shortest-first-2', waiting, [gpuOf('g0'), gpuOf('g1')], 9);
  expect(starts.map(({ task, gpu, share }) => `${task} ${gpu} ${share}`)).toEqual([
    ...['10 g0 1', '30 g1 1', '500 g0 1', '700 g1 1'],
  ]);
});

test.each([1, 2, 3])('mps-limit never gives more than 100 %% of a GPU away (seed %i)', (seed) => {
  const waiting = drawnTasks(seed).map((task) => ({ ...task, memoryMiB: 10 }));
  const resident = runningTask(profiledTask('resident', 1000, 0.4, { memoryMiB: 10 }), 0.5);
  const starts = startsOf('mps-limit', waiting, [gpuOf('g0', { running: [resident] }), gpuOf('g1')]);
  expect(starts.length).toBeGreaterThan(1);
  const given = (id: string): number =>
    starts.filter(({ gpu }) => gpu === id).reduce((sum, { share }) => sum + share, 0);
  expect(given('g0')).toBeLessThanOrEqual(0.5 + 1e-9);
  expect(given('g1')).toBeLessThanOrEqual(1 + 1e-9);
});

test('mps-limit takes the declared percentage before the observed use', () => {
  const waiting = [profiledTask('declared', 100, 0.1, { share: 0.6 }), profiledTask('observed', 100, 0.25)];
  expect(startsOf('mps-limit', waiting, [gpuOf('g0')]).map(({ share }) => share)).toEqual([0.6, 0.3]);
});

describe.each(rivals.oversubscribing)('%s', (name) => {
  const fill = (at: number): Task => profiledTask(`t${at}`, 100, 0.9, { arrivedAt: at, memoryMiB: 10 });

  test('lets tasks share a GPU that its original would keep apart, and an empty GPU goes first', () => {
    // One with an SLO and others without, as TGS pairs them.
    const waiting = [{ ...fill(0), sloMs: 110 }, fill(1), fill(2)];
    const original = name.replace('-2x', '');
    const [gpu, other] = [gpuOf('g0'), gpuOf('g1')];
    expect(startsOf(original, waiting, [gpu], 5).length).toBe(1);
    expect(startsOf(name, waiting, [gpu], 5).length).toBe(2);
    expect(new Set(startsOf(name, waiting.slice(0, 2), [gpu, other], 5).map((start) => start.gpu)).size).toBe(2);
  });
});
