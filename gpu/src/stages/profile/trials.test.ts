// Searches for request and limit of a function: what they find, how many trials they take, and trials that go wrong.
import { describe, expect, test } from '@jest/globals';
import { diluProfiler } from '../../algorithms/dilu/profile.js';
import { gpuletProfiler } from '../../baselines/gpulet.js';
import { traversalProfiler } from '../../baselines/traversal.js';
import type { Profiler, ProfileStep, Trial, TrialPoint, TrialSpace } from './trials.js';

const shares = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
const space: TrialSpace = { batches: [1, 2, 4, 8, 16, 32], shares };
type Outcome = Pick<Trial, 'ms' | 'failure' | 'memoryMiB'>;

/** Runs a search to its end, with the trials that `run` gives. */
function search(
  profiler: Profiler,
  sloMs: number | undefined,
  run: (point: TrialPoint) => Outcome | number,
): { step: Exclude<ProfileStep, { next: TrialPoint }>; trials: Trial[] } {
  const goal = sloMs === undefined ? {} : { sloMs };
  const trials: Trial[] = [];
  for (;;) {
    const step = profiler(goal, space, trials);
    if (!('next' in step)) return { step, trials };
    if (trials.length > 60) throw new Error('the search does not end');
    const { next } = step;
    expect(trials).not.toContainEqual(expect.objectContaining(next));
    const outcome = run(next);
    trials.push({ ...next, ...(typeof outcome === 'number' ? { ms: outcome } : outcome) });
  }
}

/** A function that fills 40 % of the SMs with one request, and as much more as the batch is greater: 10 ms at that share. */
const usual = ({ batch, share }: TrialPoint): number => 2 + Math.max(8, (batch * 320) / share);
const profilers: [string, Profiler][] = [
  ['dilu', diluProfiler],
  ['traversal', traversalProfiler],
  ['gpulet', gpuletProfiler],
];

describe('with an SLO', () => {
  test('Dilu finds the optimum of all trials with fewer of them', () => {
    for (const sloMs of [21, 40, 80, 160]) {
      const dilu = search(diluProfiler, sloMs, usual);
      const all = search(traversalProfiler, sloMs, usual);
      expect(all.trials).toHaveLength(60);
      expect(dilu.trials.length).toBeLessThanOrEqual(15);
      const [own, best] = [dilu, all].map(({ step }) => ('profile' in step ? step.profile : undefined));
      expect(own).toMatchObject({ keepsGoal: true, request: best!.request, batch: best!.batch });
      expect(own!.ms).toBeLessThanOrEqual(sloMs / 2);
      expect(own!.limit).toBe(Math.min(1000, 2 * own!.request));
    }
  });

  test('GPUlet takes 16 trials', () => {
    const { step, trials } = search(gpuletProfiler, 80, usual);
    expect(trials).toHaveLength(16);
    expect(step).toMatchObject({ profile: { keepsGoal: true, request: 800 } });
  });

  test('a search goes on with the trials of an earlier process, in any order', () => {
    const { step, trials } = search(diluProfiler, 80, usual);
    expect(diluProfiler({ sloMs: 80 }, space, trials.toReversed())).toEqual(step);
    const [first, second, third] = trials;
    expect(diluProfiler({ sloMs: 80 }, space, [second!, first!])).toEqual({
      next: { batch: third!.batch, share: third!.share },
    });
  });

  test.each(profilers)('%s: a function that never meets its SLO gets the whole GPU, which is said', (_, profiler) => {
    const { step } = search(profiler, 10, usual);
    expect(step).toMatchObject({
      profile: {
        request: 1000,
        limit: 1000,
        batch: 1,
        keepsGoal: false,
        reason: expect.stringContaining('within 5 ms'),
      },
    });
  });

  test.each(profilers)('%s: exhausted memory ends growth of the batch, and what fits counts', (name, profiler) => {
    const { step, trials } = search(profiler, 400, (point) =>
      point.batch >= 8 ? { failure: 'out of memory', memoryMiB: 9000 } : { ms: usual(point), memoryMiB: 3000 },
    );
    expect(step).toMatchObject({
      profile: { batch: 4, keepsGoal: true, memoryMiB: 9000, reason: expect.stringContaining('out of memory') },
    });
    if (name === 'dilu') expect(trials.filter(({ failure }) => failure !== undefined)).toHaveLength(1);
  });

  test.each(profilers)('%s: a function without a single good trial has no profile', (_, profiler) => {
    for (const ms of [NaN, 0, -1, 1e300, undefined]) {
      const { step } = search(profiler, 40, () => (ms === undefined ? { failure: 'it crashed' } : ms));
      expect(step).toEqual({ failed: expect.any(String) });
    }
    const { step } = search(profiler, 40, () => NaN);
    expect(step).toEqual({ failed: expect.stringContaining('failed: a time of NaN ms') });
    expect(search(profiler, 40, () => Infinity).step).toEqual({ failed: expect.stringContaining('too long') });
  });

  test.each(profilers)('%s: times that grow with the share are bounded and named', (_, profiler) => {
    const { step, trials } = search(profiler, 40, ({ batch, share }) => batch * (15 + share / 2));
    expect(trials.length).toBeLessThanOrEqual(60);
    expect(step).toMatchObject({ profile: { reason: expect.stringContaining('the time grows with the share') } });
  });
});

describe('a training', () => {
  /** Steps of a training that fills 60 % of the SMs. */
  const steps = ({ share }: TrialPoint): number => 100 * Math.max(1, 60 / share);

  test.each(profilers)('%s: has 80 %% of its throughput with the request and all with the limit', (name, profiler) => {
    const { step, trials } = search(profiler, undefined, steps);
    const limit = name === 'gpulet' ? 800 : 600;
    expect(step).toMatchObject({ profile: { request: 500, limit, batch: 1, keepsGoal: true } });
    expect(trials).toHaveLength({ dilu: 7, traversal: 10, gpulet: 4 }[name]!);
  });

  test('one that is as fast at every share needs the smallest', () => {
    expect(search(diluProfiler, undefined, () => 50).step).toMatchObject({ profile: { request: 100, limit: 100 } });
  });

  test('one whose throughput is in proportion to its share has the whole GPU as its limit', () => {
    const { step } = search(diluProfiler, undefined, ({ share }) => 5000 / share);
    expect(step).toMatchObject({ profile: { request: 800, limit: 1000 } });
  });

  test('trials that fail at small shares count as too slow; one that fails with the whole GPU ends the search', () => {
    const { step } = search(diluProfiler, undefined, (point) =>
      point.share < 70 ? { failure: 'killed' } : { ms: 100 },
    );
    expect(step).toMatchObject({ profile: { request: 700, limit: 700, reason: expect.stringContaining('killed') } });
    const none = search(diluProfiler, undefined, () => ({ ms: Infinity }));
    expect(none).toMatchObject({ step: { failed: 'a step takes too long at 100 %' }, trials: [{ share: 100 }] });
  });
});
