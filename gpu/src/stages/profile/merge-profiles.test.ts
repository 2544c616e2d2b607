import { expect, test } from '@jest/globals';
import type { BatchProfile, FunctionProfile } from './function-profiles.js';
import { mergedProfile } from './profile-codec.js';

const batch = (size: number, soloMs: number[], isAlone = true, startMs: number[] = []): BatchProfile => ({
  ...{ batch: size, soloMs, isAlone, startMs },
});
const profile = (version: string, batches: BatchProfile[], smUtil?: number): FunctionProfile => ({
  ...{ function: '/guest/a', gpuType: 'a100-40', mode: 'mps', version, batches },
  ...(smUtil !== undefined && { features: { smUtil }, fillSource: 'gpm' }),
});

test('runs of both profiles count, the last 16, and each size of batch that either has seen', () => {
  const earlier = profile('1', [batch(1, Array<number>(16).fill(10), true, [5]), batch(2, [20])], 0.3);
  const since = profile('1', [batch(1, [12], true, [6]), batch(4, [40])], 0.2);
  expect(mergedProfile(earlier, since)).toEqual(
    profile('1', [batch(2, [20]), batch(1, [...Array<number>(15).fill(10), 12], true, [5, 6]), batch(4, [40])], 0.3),
  );
});

test('what was measured alone stands, whichever life it is of', () => {
  const [alone, beside] = [profile('1', [batch(1, [10])]), profile('1', [batch(1, [14, 15], false, [3])])];
  expect(mergedProfile(alone, beside).batches).toEqual([batch(1, [10], true, [3])]);
  expect(mergedProfile(beside, alone).batches).toEqual([batch(1, [10], true, [3])]);
});

test('what was predicted beside what was measured is kept of both profiles, whichever time alone stands', () => {
  const compared = [1, 2].map((predicted) => ({ predicted, measured: 1.5 }));
  const [first, second] = compared.map((run) => ({ ...batch(1, [10]), beside: [run] }));
  const both = (one: BatchProfile, other: BatchProfile) => mergedProfile(profile('1', [one]), profile('1', [other]));
  expect(both(first!, second!).batches[0]?.beside).toEqual(compared);
  expect(both(first!, { ...second!, isAlone: false }).batches[0]?.beside).toEqual(compared);
});

test('runs with inputs of other sizes are not mixed, nor those of earlier versions that did not know the size', () => {
  const sized = (upTo: number, soloMs: number[]): BatchProfile => ({
    ...batch(1, soloMs),
    inputs: { unit: 'bytes', upTo },
  });
  const earlier = profile('1', [batch(1, [5]), sized(256, [10])]);
  const since = profile('1', [sized(512, [20]), sized(256, [11])]);
  const merged = [batch(1, [5]), sized(512, [20]), sized(256, [10, 11])];
  expect(mergedProfile(earlier, since).batches).toEqual(merged);
});

test('an earlier version is forgotten, unless only processes were seen since', () => {
  const earlier = profile('1', [batch(1, [10])], 0.5);
  expect(mergedProfile(earlier, profile('2', [batch(1, [30])]))).toEqual(profile('2', [batch(1, [30])]));
  expect(mergedProfile(earlier, profile('', [], 0.6))).toEqual(profile('1', [batch(1, [10])], 0.6));
});

test('the fill of the more trusted source stands, whichever life it is of, and figures at shares are kept of both', () => {
  const alone = (values: number[]): BatchProfile => ({ ...batch(1, [10]), timesAlone: [{ share: 100, values }] });
  const activity = { ...profile('1', [alone([1])], 0.9), features: { smUtil: 0.9, dramUtil: 0.4 } };
  const runs = { ...profile('1', [alone([2])]), features: { smUtil: 0.2 }, fillSource: 'runs' as const };
  for (const [earlier, since, values] of [[activity, runs, [1, 2]] as const, [runs, activity, [2, 1]] as const]) {
    const merged = mergedProfile(earlier, since);
    expect([merged.features, merged.fillSource]).toEqual([{ smUtil: 0.2, dramUtil: 0.4 }, 'runs']);
    expect(merged.batches[0]?.timesAlone).toEqual([{ share: 100, values }]);
  }
});
