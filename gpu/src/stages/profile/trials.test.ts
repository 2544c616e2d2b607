// Searches for request and limit of a function: what they find, how many trials they take, and trials that go wrong.
import { describe, expect, test } from '@jest/globals';
import { diluProfiler } from '../../algorithms/dilu/profile.js';
import { profilerCases, search, space, usual } from '../../testing/profiler-cases.js';

profilerCases('dilu', diluProfiler, { trainingLimit: 600, trainingTrials: 7 });

describe('with an SLO', () => {
  test('a search goes on with the trials of an earlier process, in any order', () => {
    const { step, trials } = search(diluProfiler, 80, usual);
    expect(diluProfiler({ sloMs: 80 }, space, trials.toReversed())).toEqual(step);
    const [first, second, third] = trials;
    expect(diluProfiler({ sloMs: 80 }, space, [second!, first!])).toEqual({
      next: { batch: third!.batch, share: third!.share },
    });
  });

  test('a batch that exhausts the memory is tried once', () => {
    const { trials } = search(diluProfiler, 400, (point) =>
      point.batch >= 8 ? { failure: 'out of memory' } : { ms: usual(point) },
    );
    expect(trials.filter(({ failure }) => failure !== undefined)).toHaveLength(1);
  });
});

describe('a training', () => {
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
