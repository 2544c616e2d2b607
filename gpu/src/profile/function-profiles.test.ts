import { beforeEach, describe, expect, test } from '@jest/globals';
import { FunctionProfiles } from './function-profiles.js';
import type { FunctionProfile, ProfiledRun } from './function-profiles.js';
import { ProfileFormatError, readProfile } from './profile-codec.js';

const gpu = { type: 'a100-40', mode: 'mps' } as const;
const task = { function: '/guest/a', version: '0.0.1', batch: 1, arrivedAt: 10 };
const key = { function: '/guest/a', gpuType: 'a100-40', mode: 'mps' };

let changes: [string, boolean][];
let versions: [string, string | undefined][];
let profiles: FunctionProfiles;
const newProfiles = (maxProfiles?: number): FunctionProfiles =>
  new FunctionProfiles({
    onChange: (changed, profile) => void changes.push([changed.function, profile !== undefined]),
    onVersion: (name, version) => void versions.push([name, version]),
    ...(maxProfiles !== undefined && { maxProfiles }),
  });
beforeEach(() => {
  [changes, versions] = [[], []];
  profiles = newProfiles();
});

const ran = (tookMs: number, more: Partial<ProfiledRun> = {}): string | undefined =>
  profiles.ran({ task, gpu, tookMs, slowdown: 1, isWarm: true, isAlone: true, ...more });

describe('time alone', () => {
  test('is the median of warm runs, each without what its neighbours and share cost', () => {
    for (const tookMs of [100, 110, 900]) ran(tookMs, { slowdown: tookMs === 110 ? 1.1 : 1 });
    expect(profiles.of(task)).toEqual({ soloMs: 100 });
  });

  test('that was measured alone takes the place of what was worked out, and does not give way to it', () => {
    ran(400, { slowdown: 2, isAlone: false });
    expect([profiles.of(task).soloMs, profiles.aloneMs(task, gpu)]).toEqual([200, undefined]);
    ran(150);
    ran(400, { slowdown: 2, isAlone: false });
    expect([profiles.of(task).soloMs, profiles.aloneMs(task, gpu)]).toEqual([150, 150]);
  });

  test('is of one kind of GPU; a task is told of the one with the most runs', () => {
    ran(100);
    for (let count = 0; count < 2; count += 1) ran(50, { gpu: { type: 'h100', mode: 'mps' } });
    expect(profiles.of(task).soloMs).toBe(50);
    expect(profiles.aloneMs(task, gpu)).toBe(100);
    expect(profiles.aloneMs(task, { ...gpu, mode: 'timeslice' })).toBeUndefined();
  });

  test('of cold runs says what a start takes beyond it, once that is known', () => {
    ran(300, { isWarm: false });
    ran(100);
    ran(350, { isWarm: false });
    expect(profiles.of(task)).toEqual({ soloMs: 100, startMs: 250 });
  });

  test.each([NaN, 0, -1, Infinity])('of %d ms is refused', (tookMs) => {
    expect(ran(tookMs)).toBe(`a time of ${tookMs} ms`);
    expect([profiles.all(), changes]).toEqual([[], []]);
  });
});

describe('a new version', () => {
  const second = { ...task, version: '0.0.2', arrivedAt: 20 };

  test('begins anew, and that is told', () => {
    profiles.of(task);
    ran(100);
    expect(profiles.of(second)).toEqual({});
    expect(versions).toEqual([['/guest/a', '0.0.2']]);
    expect(ran(100)).toBe('version 0.0.1, which was replaced');
    expect(ran(70, { task: second })).toBeUndefined();
    expect(profiles.of(second)).toEqual({ soloMs: 70 });
  });

  test('is not replaced by a request for the old one that has waited since before', () => {
    profiles.of(task);
    profiles.of(second);
    ran(70, { task: second });
    expect(profiles.of({ ...task, arrivedAt: 15 })).toEqual({});
    expect(profiles.of(second)).toEqual({ soloMs: 70 });
  });
});

test('of what processes were seen to take the most counts, within what there is', () => {
  profiles.seen('/guest/a', gpu, { smUtil: 0.5, dramUtil: 0, l2Util: 0 });
  profiles.seen('/guest/a', gpu, { smUtil: 0.3, dramUtil: 0.2, l2Util: NaN });
  profiles.seen('/guest/a', gpu, { smUtil: 1.2, dramUtil: 0.1, l2Util: 0 });
  const seen = changes.length;
  profiles.seen('/guest/a', gpu, { smUtil: 0.9, dramUtil: 0.2, l2Util: 0 });
  expect(profiles.of(task)).toEqual({ features: { smUtil: 1, dramUtil: 0.2, l2Util: 0 } });
  expect(changes).toHaveLength(seen);
  ran(100);
  expect(profiles.of(task).features?.smUtil).toBe(1);
});

describe('what is kept', () => {
  const stored = (): FunctionProfile[] => profiles.all().map((one) => readProfile(JSON.parse(JSON.stringify(one))));

  test('is the same in the next life', () => {
    profiles.of(task);
    profiles.seen('/guest/a', gpu, { smUtil: 0.5, dramUtil: 0, l2Util: 0 });
    ran(100);
    profiles.compared(task, gpu, { predicted: 1.2, measured: 1.4 });
    const next = new FunctionProfiles();
    for (const one of stored()) next.restore(one);
    expect(next.of(task)).toEqual({ soloMs: 100, features: { smUtil: 0.5, dramUtil: 0, l2Util: 0 } });
    expect(next.aloneMs(task, gpu)).toBe(100);
    expect(next.all()[0]?.batches[0]?.beside).toEqual([{ predicted: 1.2, measured: 1.4 }]);
  });

  test('can be forgotten', () => {
    ran(100);
    expect([profiles.forget('/guest/a'), profiles.forget('/guest/a')]).toEqual([true, false]);
    expect([profiles.of(task), changes.at(-1), versions]).toEqual([{}, ['/guest/a', false], [['/guest/a', undefined]]]);
  });

  test('is bounded: what was not changed for longest goes', () => {
    profiles = newProfiles(2);
    for (const name of ['a', 'b', 'a', 'c']) ran(100, { task: { ...task, function: `/guest/${name}` } });
    expect(profiles.all().map((one) => one.function)).toEqual(['/guest/a', '/guest/c']);
    expect(changes.at(-1)).toEqual(['/guest/c', true]);
    expect(changes).toContainEqual(['/guest/b', false]);
  });

  test.each([
    null,
    { ...key, version: '1' },
    { ...key, version: '1', batches: [{ batch: 1, soloMs: [null], isAlone: true, startMs: [] }] },
    {
      ...key,
      version: '1',
      batches: [{ batch: 1, soloMs: [], isAlone: true, startMs: [], beside: [{ predicted: 1 }] }],
    },
    { ...key, version: '1', batches: [], features: { smUtil: 2, dramUtil: 0, l2Util: 0 } },
  ])('as %j is refused', (bad) => {
    expect(() => readProfile(bad)).toThrow(ProfileFormatError);
  });
});
