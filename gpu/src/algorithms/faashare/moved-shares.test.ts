// Shares that FaaShare moves while functions run, in replay.
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import { replay } from '../../simulate/replay.js';
import type { GpuTruth, ReplayJob, ReplayRun } from '../../simulate/replay.js';
import { dividedSms, profiledTask } from '../../testing/fixtures.js';
import type { Task } from '../../view/view.js';

/** Use of the SMs by each workload. */
const uses = { half: 0.5, more: 0.6, most: 0.7 } as const;
type Workload = keyof typeof uses;
const features = (workload: string) => profiledTask('', 1, uses[workload as Workload]).features!;
const truth: GpuTruth = {
  noise: 0,
  used: () => 1,
  slowdowns: (clients) => {
    const all = clients.map(({ workload, share }) => ({ features: features(workload), share }));
    return Float64Array.from(all, (one) =>
      dividedSms.slowdown(
        one,
        all.filter((other) => other !== one),
      ),
    );
  },
};

function job(id: string, workload: Workload, soloMs: number, changes: Partial<Task> = {}): ReplayJob {
  const task = profiledTask(id, soloMs, uses[workload], { function: `/a/${id}`, ...changes });
  return { workload, soloMs, startMs: 0, task };
}

function run(jobs: ReplayJob[], movesShares: boolean, settings: Record<string, number> = {}): ReplayRun {
  const random = seededRandom(1);
  const needs = { predictorOf: () => dividedSms, random, admission: 'best-effort' } as const;
  const places = [{ id: 'g0', node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000, movesShares }];
  return replay(jobs, { places }, truth, makePolicy({ base: 'faashare', settings }, needs), random);
}

const endOf = ({ finished }: ReplayRun, id: string): number =>
  finished.find(({ job: { task } }) => task.id === id)?.finishedAt ?? NaN;
const movesOf = ({ actions }: ReplayRun): unknown[] =>
  actions.map(({ action }) => (action.kind === 'reshare' ? action.limit : action.kind));

test('a run is held back while a shorter one is there, and then has its share again', () => {
  const jobs = (): ReplayJob[] => [job('long', 'most', 20_000), job('short', 'more', 2000, { arrivedAt: 1000 })];
  const [moved, fixed] = [run(jobs(), true, { minMoveGain: 0 }), run(jobs(), false)];
  expect(movesOf(fixed)).toEqual([]);
  expect(movesOf(moved)).toEqual([expect.any(Number), 0.7]);
  expect(movesOf(moved)[0]).toBeLessThan(0.7);
  expect(endOf(moved, 'short')).toBeLessThan(endOf(fixed, 'short'));
  const sum = (one: ReplayRun): number => endOf(one, 'long') + endOf(one, 'short');
  expect(sum(moved)).toBeLessThan(sum(fixed));
});

test('one is put beside a run that is held back for it, where it would be late beside that otherwise', () => {
  const jobs = (): ReplayJob[] => [
    job('long', 'most', 20_000),
    job('strict', 'more', 2000, { arrivedAt: 1000, sloMs: 2500 }),
  ];
  const isLate = (one: ReplayRun): boolean => endOf(one, 'strict') > 3500;
  expect(isLate(run(jobs(), false))).toBe(true);
  expect(isLate(run(jobs(), true))).toBe(false);
  const [off, fixed] = [run(jobs(), true, { minMoveGain: 1 }), run(jobs(), false)];
  expect([movesOf(off), endOf(off, 'strict')]).toEqual([[], endOf(fixed, 'strict')]);
});

test('none is held back that would miss its own deadline, nor where it gains less than is asked for', () => {
  const tight = run(
    [job('long', 'most', 20_000, { sloMs: 24_000 }), job('short', 'more', 2000, { arrivedAt: 1000 })],
    true,
    { minMoveGain: 0 },
  );
  expect(movesOf(tight)).toEqual([]);
  expect(endOf(tight, 'long')).toBeLessThanOrEqual(24_000);
  const jobs = [job('long', 'half', 20_000), job('short', 'half', 2000, { arrivedAt: 1000 })];
  expect(movesOf(run(jobs, true))).toEqual([]);
});

test('a share that its owner has fixed is never exceeded', () => {
  const jobs = [job('long', 'most', 20_000, { share: 0.65 }), job('short', 'more', 2000, { arrivedAt: 1000 })];
  const limits = movesOf(run(jobs, true, { minMoveGain: 0 })) as number[];
  expect(Math.max(...limits)).toBe(0.65);
});

test('a run has its share again, for its deadline, where the one that it was held back for takes longer than predicted', () => {
  const jobs = (shortMs: number): ReplayJob[] => [
    job('long', 'most', 20_000, { sloMs: 33_000 }),
    { ...job('short', 'more', 2000, { arrivedAt: 1000 }), soloMs: shortMs },
  ];
  const sooner = run(jobs(2000), true, { minMoveGain: 0 });
  const overrun = run(jobs(30_000), true, { minMoveGain: 0 });
  expect(movesOf(sooner)).toEqual([expect.any(Number), 0.7]);
  expect(movesOf(overrun)).toEqual(movesOf(sooner));
  expect(endOf(overrun, 'long')).toBeLessThanOrEqual(33_000);
  expect(endOf(overrun, 'short')).toBeGreaterThan(33_000);
});
