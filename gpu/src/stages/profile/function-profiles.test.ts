import { beforeEach, describe, expect, test } from '@jest/globals';
import { FunctionProfiles } from './function-profiles.js';
import type { FunctionProfile, ProfiledRun, SeenAlone } from './function-profiles.js';
import { readProfile } from './profile-codec.js';

const gpu = { gpuType: 'a100-40', mode: 'mps' } as const;
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
    expect([profiles.of(task).soloMs, profiles.aloneMs(task, gpu)]).toEqual([150, undefined]);
    ran(130);
    expect([profiles.of(task).soloMs, profiles.aloneMs(task, gpu)]).toEqual([150, 150]);
  });

  test('is of one kind of GPU; a task is told of the one with the most runs', () => {
    for (let count = 0; count < 2; count += 1) ran(100);
    for (let count = 0; count < 3; count += 1) ran(50, { gpu: { gpuType: 'h100', mode: 'mps' } });
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

describe('times with inputs of different sizes', () => {
  const bytes = (value: number) => ({ ...task, inputSize: { value } });
  const reported = (value: number) => ({ ...task, inputSize: { value, isReported: true as const } });
  const twice = (tookMs: number, of: ReturnType<typeof bytes>): void => {
    for (let run = 0; run < 2; run += 1) ran(tookMs, { task: of });
  };

  test('are apart, and only runs of one bucket are a time alone', () => {
    twice(100, bytes(2000));
    ran(900, { task: bytes(60_000) });
    expect([profiles.of(bytes(1100)).soloMs, profiles.of(bytes(50_000)).soloMs]).toEqual([100, 900]);
    expect(profiles.aloneMs(bytes(1100), gpu)).toBe(100);
    for (const other of [bytes(60_000), bytes(1000), task]) expect(profiles.aloneMs(other, gpu)).toBeUndefined();
    expect(profiles.usualAloneMs(task, gpu)).toBe(100);
  });

  test('of small parameters are one', () => {
    twice(100, bytes(2));
    expect(profiles.aloneMs(bytes(256), gpu)).toBe(100);
    expect(profiles.aloneMs(bytes(257), gpu)).toBeUndefined();
  });

  test('predict others: between two in logarithms, else the nearest', () => {
    twice(100, reported(16));
    twice(400, reported(256));
    expect(profiles.of(reported(64)).soloMs).toBeCloseTo(200);
    expect([profiles.of(reported(1)).soloMs, profiles.of(reported(5000)).soloMs]).toEqual([100, 400]);
    expect(profiles.aloneMs(reported(64), gpu)).toBeUndefined();
    expect(profiles.aloneByReported(task, gpu)).toEqual([
      [16, 100],
      [256, 400],
    ]);
  });

  test('that the function reports are apart from bytes, which are predicted by the size with the most runs', () => {
    twice(100, reported(1));
    ran(100, { task: reported(1) });
    twice(800, reported(64));
    expect(profiles.of(bytes(64)).soloMs).toBe(100);
    expect(profiles.aloneMs(bytes(64), gpu)).toBeUndefined();
  });

  test('give runs whose size is not known their times, and are not given theirs as times alone', () => {
    for (let run = 0; run < 2; run += 1) ran(70);
    expect([profiles.of(bytes(9)).soloMs, profiles.aloneMs(bytes(9), gpu)]).toEqual([70, undefined]);
    twice(100, bytes(9));
    expect([profiles.of(bytes(9)).soloMs, profiles.aloneMs(bytes(9), gpu)]).toEqual([100, 100]);
    expect([profiles.of(task).soloMs, profiles.aloneMs(task, gpu)]).toEqual([70, 70]);
  });

  test('are kept of 16 sizes, the rarest goes, and survive the store', () => {
    for (let size = 0; size < 40; size += 1) twice(100 + size, reported(2 ** size));
    for (let run = 0; run < 5; run += 1) ran(1, { task: bytes(1) });
    const [stored] = profiles.all();
    expect(stored?.batches).toHaveLength(16);
    const next = newProfiles();
    next.restore(readProfile(JSON.parse(JSON.stringify(stored))));
    expect([next.aloneMs(bytes(1), gpu), next.aloneMs(reported(2 ** 39), gpu)]).toEqual([1, 139]);
  });

  test.each([NaN, -3, Infinity])('take a reported size of %d as 0', (value) => {
    twice(100, reported(value));
    expect(profiles.aloneMs(reported(0), gpu)).toBe(100);
    expect(profiles.of(reported(8)).soloMs).toBe(100);
  });

  test('say what a cold run takes for itself by other sizes', () => {
    twice(100, bytes(2000));
    ran(350, { task: bytes(60_000), isWarm: false });
    expect(profiles.of(bytes(2000))).toEqual({ soloMs: 100, startMs: 250 });
  });
});

describe('a new version', () => {
  const second = { ...task, version: '0.0.2', arrivedAt: 20 };

  test('starts empty, and that is told', () => {
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

describe('figures of a function that alone computed', () => {
  const activity = (part: number): SeenAlone => ({ fill: { part, source: 'gpm' } });

  test('is taken at its most, within what there is', () => {
    profiles.seen('/guest/a', gpu, activity(0.5));
    profiles.seen('/guest/a', gpu, { ...activity(0.3), dramUtil: 0.2 });
    profiles.seen('/guest/a', gpu, { dramUtil: 1.2 });
    const seen = changes.length;
    profiles.seen('/guest/a', gpu, { ...activity(0.4), dramUtil: NaN });
    expect(profiles.of(task)).toEqual({ featureRecord: { smUtil: 0.5, dramUtil: 1 } });
    expect(changes).toHaveLength(seen);
    ran(100);
    expect(profiles.of(task).featureRecord?.smUtil).toBe(0.5);
  });

  test('is absent where nothing told it', () => {
    profiles.seen('/guest/a', gpu, {});
    expect([profiles.of(task), profiles.all()]).toEqual([{}, []]);
    profiles.seen('/guest/a', gpu, { dramUtil: 0.3 });
    expect(profiles.of(task)).toEqual({ featureRecord: { dramUtil: 0.3 } });
  });
});

describe('what a function fills', () => {
  const known = (): unknown => profiles.all().map(({ features, fillSource }) => [features?.smUtil, fillSource])[0];
  const runsAt = (shareClass: number, tookMs: number, count = 3, more: Partial<ProfiledRun> = {}): void => {
    for (let one = 0; one < count; one += 1) ran(tookMs, { shareClass, ...more });
  };
  const launchesAt = (share: number, value: number, count = 3, on: ProfiledRun['gpu'] = gpu): void => {
    for (let one = 0; one < count; one += 1) profiles.launched('/guest/a', on, 1, { share, value });
  };
  beforeEach(() => void profiles.of(task));

  test('is learned of runs alone at several classes, three at each at least', () => {
    runsAt(100, 100);
    runsAt(10, 101, 2);
    expect(known()).toEqual([undefined, undefined]);
    runsAt(10, 101, 1);
    expect(known()).toEqual([0.1, 'runs']);
  });

  test('is not learned of runs that were not alone, not warm, not held to a share, or of short ones', () => {
    runsAt(100, 100);
    runsAt(10, 101, 3, { isAlone: false });
    runsAt(10, 101, 3, { isWarm: false });
    ran(100);
    expect(known()).toEqual([undefined, undefined]);
    profiles.forget('/guest/a');
    for (const mode of ['timeslice', 'exclusive', 'mig'] as const) {
      runsAt(100, 100, 3, { gpu: { ...gpu, mode } });
      runsAt(10, 100, 3, { gpu: { ...gpu, mode } });
      expect(known()).toEqual([undefined, undefined]);
    }
    profiles.forget('/guest/a');
    runsAt(100, 3);
    runsAt(10, 3);
    expect(known()).toEqual([undefined, undefined]);
  });

  test('is learned of launches at several classes, three looks at each at least', () => {
    launchesAt(100, 800);
    launchesAt(10, 400, 2);
    expect(known()).toEqual([undefined, undefined]);
    launchesAt(10, 400, 1);
    expect(known()).toEqual([0.2, 'launches']);
    launchesAt(10, 0);
    launchesAt(10, NaN);
    expect(known()).toEqual([0.2, 'launches']);
  });

  test('is of the more trusted source, whichever comes first, and that is kept with it', () => {
    profiles.seen('/guest/a', gpu, { fill: { part: 0.4, source: 'gpm' } });
    expect(known()).toEqual([0.4, 'gpm']);
    launchesAt(100, 800);
    launchesAt(10, 400);
    expect(known()).toEqual([0.2, 'launches']);
    runsAt(100, 100);
    runsAt(30, 100);
    expect(known()).toEqual([0.3, 'runs']);
    const whole = [100, 70, 50, 30, 20].map((share) => ({ share, value: 1 }));
    profiles.sampled(task, gpu, [...whole, { share: 10, value: 2 }]);
    expect(known()).toEqual([0.2, 'sample']);
    runsAt(10, 100);
    launchesAt(10, 800, 16);
    profiles.seen('/guest/a', gpu, { fill: { part: 0.9, source: 'gpm' } });
    expect(known()).toEqual([0.2, 'sample']);
  });

  test('is of one version', () => {
    runsAt(100, 100);
    runsAt(10, 100);
    const second = { ...task, version: '0.0.2', arrivedAt: 20 };
    profiles.of(second);
    profiles.sampled(
      task,
      gpu,
      [100, 10].map((share) => ({ share, value: 1 })),
    );
    expect(profiles.of(second)).toEqual({});
    runsAt(100, 100, 3, { task: second });
    expect(known()).toEqual([undefined, undefined]);
  });
});

describe('what is kept', () => {
  const stored = (): FunctionProfile[] => profiles.all().map((one) => readProfile(JSON.parse(JSON.stringify(one))));

  test('is the same after a restart', () => {
    profiles.of(task);
    profiles.seen('/guest/a', gpu, { fill: { part: 0.5, source: 'gpm' }, dramUtil: 0.1 });
    for (let one = 0; one < 3; one += 1) ran(100, { shareClass: 100 });
    profiles.launched('/guest/a', gpu, 1, { share: 100, value: 800 });
    profiles.compared(task, gpu, { predicted: 1.2, measured: 1.4 });
    const next = new FunctionProfiles();
    for (const one of stored()) next.restore(one);
    expect(next.of(task)).toEqual({ soloMs: 100, featureRecord: { smUtil: 0.5, dramUtil: 0.1 } });
    expect(next.of(task).soloMs).toBe(100);
    expect(next.all()).toEqual(profiles.all());
    expect(next.all()[0]?.batches[0]?.beside).toEqual([{ predicted: 1.2, measured: 1.4 }]);
  });

  test('of earlier versions loses the utilisation that stood for a fill, and zeros for what was not told', () => {
    const earlier = (features: object): FunctionProfile => readProfile({ ...key, version: '1', batches: [], features });
    expect(earlier({ smUtil: 0.9, dramUtil: 0.2, l2Util: 0 })).toEqual({
      ...{ ...key, version: '1', batches: [], features: { dramUtil: 0.2 } },
    });
    expect(earlier({ smUtil: 0.9, dramUtil: 0, l2Util: 0 })).toEqual({ ...key, version: '1', batches: [] });
  });

  test('of later versions keeps figures with names that are not known here', () => {
    const stored = { ...key, version: '1', batches: [], features: { smUtil: 0.2, layers: 50 }, fillSource: 'runs' };
    expect(readProfile(stored)).toEqual(stored);
    expect(readProfile({ ...stored, fillSource: 'oracle' })).toEqual({
      ...{ ...key, version: '1', batches: [], features: { layers: 50 } },
    });
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
    { ...key, version: '1', batches: [], features: { layers: null } },
    {
      ...key,
      version: '1',
      batches: [{ batch: 1, soloMs: [], isAlone: true, startMs: [], timesAlone: [{ share: 100, values: [] }] }],
    },
  ])('as %j is refused', (bad) => {
    expect(() => readProfile(bad)).toThrow('this is no profile');
  });
});
