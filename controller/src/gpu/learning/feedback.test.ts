import { describe, expect, test } from '@jest/globals';
import { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import type { LoggedRun } from '@gpuwhisk/gpu/stages/profile/run-log';
import { FirstShare } from '@gpuwhisk/gpu/stages/place/first-share';
import { SetTrials } from '@gpuwhisk/gpu/share/set-trials';
import { dividedSms, profiledTask, taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { Feedback } from './feedback.js';
import type { PerformanceData } from './performance-data.js';

const gpu = { id: 'g', gpuType: 't', mode: 'mps' } as const;
const task = taskOf('one', { function: '/a/one' });
const other = taskOf('other', { function: '/a/other' });
const beside = (part: number, neighbour: Task = other): ObservedRun['beside'][number] => ({
  ...{ task: neighbour, share: 1, part },
});

/** The time alone that is learned of runs of 1350 ms beside others, under the rule or without it. */
function soloMsOf(runs: readonly ObservedRun['beside'][], rule?: FirstShare, of: Task = task): number | undefined {
  const profiles = new FunctionProfiles();
  const data = {
    profiles,
    predictors: { predictor: () => dividedSms },
    metrics: { runOffered: () => undefined, setMeasured: () => undefined },
  };
  const feedback = new Feedback(data as unknown as PerformanceData, rule);
  for (const one of runs) {
    const run: LoggedRun & ObservedRun = {
      ...{ task: of, gpu, alsoOn: [], share: 1, startedAt: 0, startMs: 0, isWarm: true, shareClass: 100 },
      ...{ hasUnknownNeighbours: false, ranMs: 1350, beside: one },
    };
    feedback.ran(run);
  }
  return profiles.of({ ...of, arrivedAt: 0 }).soloMs;
}

describe('the time alone of a function of which nothing is measured', () => {
  const assumed = { unknown: 1.35, full: 0 };
  const rule = new FirstShare(assumed, new SetTrials());

  test('is worked out by the rule, not as if its neighbour filled the GPU', () => {
    expect(soloMsOf([[beside(1)]], rule)).toBeCloseTo(1000);
    expect(soloMsOf([[beside(1)]])).toBeLessThan(600);
  });

  test('counts the parts of its time with a neighbour, one after the other', () => {
    // Half of its time alone, half at 1 / 1.35 of its speed.
    expect(soloMsOf([[beside(0.5)]], rule)).toBeCloseTo(675 + 675 / 1.35);
    expect(soloMsOf([[beside(0.3), beside(0.7, taskOf('third', { function: '/a/third' }))]], rule)).toBeCloseTo(1000);
  });

  test('is its time where it ran alone', () => {
    expect(soloMsOf([[]], rule)).toBe(1350);
    expect(soloMsOf([[beside(0.01)]], rule)).toBe(1350);
  });

  test('goes by predictions beside several at once, and beside one with an SLO', () => {
    const several = [[beside(1), beside(0.5, taskOf('third', { function: '/a/third' }))]];
    const strict = [[beside(1, profiledTask('s', 100, 0.5, { sloMs: 1000 }))]];
    for (const runs of [several, strict]) expect(soloMsOf(runs, rule)).toBe(soloMsOf(runs));
  });

  test('of known functions goes by predictions', () => {
    const known = profiledTask('k', 1000, 0.5, { function: '/a/k' });
    const runs = [[beside(1, { ...known, function: '/a/k2' })]];
    expect(soloMsOf(runs, rule, known)).toBe(soloMsOf(runs, undefined, known));
  });

  test('goes by measurements of the pair once each has two runs', () => {
    const trials = new SetTrials();
    const ran = (of: Task, ranMs: number, neighbour?: Task): void =>
      trials.ran({ task: of, gpu, share: 1, ranMs, endedAt: 0, beside: neighbour ? [beside(1, neighbour)] : [] });
    for (const of of [task, other]) for (let run = 0; run < 4; run += 1) ran(of, 1000);
    const solo = (): number | undefined => soloMsOf([[beside(1)]], new FirstShare(assumed, trials));
    for (let run = 0; run < 2; run += 1) {
      expect(solo()).toBeCloseTo(1000);
      ran(task, 1500, other);
      ran(other, 1100, task);
    }
    expect(solo()).toBeCloseTo(900);
  });
});
