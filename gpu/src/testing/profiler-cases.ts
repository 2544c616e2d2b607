// Cases that every search for request and limit of a function passes.
import { describe, expect, test } from '@jest/globals';
import type { Profiler, ProfileStep, Trial, TrialPoint, TrialSpace } from '../stages/profile/trials.js';

const shares: readonly number[] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/** The batches and shares of all searches here. */
export const space: TrialSpace = { batches: [1, 2, 4, 8, 16, 32], shares };
type Outcome = Pick<Trial, 'ms' | 'failure' | 'memoryMiB'>;

/** Runs a search to its end, with the trials that `run` gives. */
export function search(
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
export const usual = ({ batch, share }: TrialPoint): number => 2 + Math.max(8, (batch * 320) / share);

/** Steps of a training that fills 60 % of the SMs. */
const fillsSixty = ({ share }: TrialPoint): number => 100 * Math.max(1, 60 / share);

/** What differs between searches for a training that fills 60 % of the SMs: its limit, in thousandths, and the trials. */
export interface TrainingSearch {
  trainingLimit: number;
  trainingTrials: number;
}

/** Runs the cases with a search. */
export function profilerCases(
  name: string,
  profiler: Profiler,
  { trainingLimit, trainingTrials }: TrainingSearch,
): void {
  describe(name, () => {
    test('a function that never meets its SLO gets the whole GPU, which is said', () => {
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

    test('exhausted memory ends growth of the batch, and what fits counts', () => {
      const { step } = search(profiler, 400, (point) =>
        point.batch >= 8 ? { failure: 'out of memory', memoryMiB: 9000 } : { ms: usual(point), memoryMiB: 3000 },
      );
      expect(step).toMatchObject({
        profile: { batch: 4, keepsGoal: true, memoryMiB: 9000, reason: expect.stringContaining('out of memory') },
      });
    });

    test('a function without a single good trial has no profile', () => {
      for (const ms of [NaN, 0, -1, 1e300, undefined]) {
        const { step } = search(profiler, 40, () => (ms === undefined ? { failure: 'it crashed' } : ms));
        expect(step).toEqual({ failed: expect.any(String) });
      }
      const { step } = search(profiler, 40, () => NaN);
      expect(step).toEqual({ failed: expect.stringContaining('failed: a time of NaN ms') });
      expect(search(profiler, 40, () => Infinity).step).toEqual({ failed: expect.stringContaining('too long') });
    });

    test('times that grow with the share are bounded and named', () => {
      const { step, trials } = search(profiler, 40, ({ batch, share }) => batch * (15 + share / 2));
      expect(trials.length).toBeLessThanOrEqual(60);
      expect(step).toMatchObject({ profile: { reason: expect.stringContaining('the time grows with the share') } });
    });

    test('a training has 80 % of its throughput with the request and all with the limit', () => {
      const { step, trials } = search(profiler, undefined, fillsSixty);
      expect(step).toMatchObject({ profile: { request: 500, limit: trainingLimit, batch: 1, keepsGoal: true } });
      expect(trials).toHaveLength(trainingTrials);
    });
  });
}
