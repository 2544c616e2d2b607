import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import { requestOfTask } from '../../view/requests.js';
import { replay } from '../../simulate/replay.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { ReplayJob, ReplayRun } from '../../simulate/replay.js';
import { dividedSms, fillingInTurn, gpuOf, runningTask, taskOf } from '../../testing/fixtures.js';
import { ArrivalCounts } from '../../view/function-log.js';
import type { FunctionState, InstanceState, ProfiledShares, View } from '../../view/view.js';
import { diluForecastDefaults, diluScale, diluScaleDefaults, diluWithForecast } from './scale.js';
import { profiledRates, servedBy } from './served.js';
import { ledgerWith, viewOf } from '../../testing/views.js';

const served = { request: 100, limit: 150 };
const at = 100_000;

/** A function whose last seconds had these requests, the newest last. */
function functionOf(seconds: readonly number[], changes: Partial<FunctionState> = {}): FunctionState {
  const bySecond = (): Uint32Array => {
    const counts = new Uint32Array(60);
    // The second of the view is not over.
    counts.set(seconds, counts.length - 1 - seconds.length);
    return counts;
  };
  return { task: taskOf('last'), arrivals: { bySecond, byMinute: bySecond }, served, ...changes };
}

function instanceOf(id: string, changes: Partial<InstanceState> = {}): InstanceState {
  const share = { request: 0.3, limit: 0.6, class: 0.7 };
  const known = { function: '/a/f', namespace: 'a', gpus: ['g0'], memoryMiB: 1000, tasks: [], share };
  return { id, ...known, state: 'running', ...changes };
}

const instances = (count: number): InstanceState[] => Array.from({ length: count }, (_, i) => instanceOf(`i${i}`));
const viewWith = (of: FunctionState[], there: InstanceState[]): View => {
  return viewOf({ at, functions: of, instances: there });
};
const seconds = (count: number, requests: number, before = 0): number[] => [
  ...Array<number>(40 - count).fill(before),
  ...Array<number>(count).fill(requests),
];

describe('dilu', () => {
  const scale = diluScale(diluScaleDefaults);
  const changes = (of: FunctionState, there: InstanceState[]): [number, string[]] => {
    const { launch, retire } = scale(viewWith([of], there));
    return [launch.reduce((sum, { count }) => sum + count, 0), retire.map(({ instance }) => instance)];
  };

  test('launches for the twentieth second beyond what instances serve at their requests, as many as it takes', () => {
    expect(changes(functionOf(seconds(19, 140)), instances(1))).toEqual([0, []]);
    expect(changes(functionOf(seconds(20, 140)), instances(1))).toEqual([1, []]);
    expect(changes(functionOf(seconds(20, 140)), instances(2))).toEqual([0, []]);
    expect(changes(functionOf(seconds(20, 290)), instances(1))).toEqual([2, []]);
    expect(changes(functionOf(seconds(40, 100)), instances(1))).toEqual([0, []]);
  });

  test('launches for the first second beyond what they serve at their limits, or a later one if that is set', () => {
    expect(changes(functionOf(seconds(1, 299)), instances(1))).toEqual([1, []]);
    const second = diluScale({ ...diluScaleDefaults, surgeSamples: 2 });
    expect(second(viewWith([functionOf(seconds(1, 299))], instances(1))).launch).toEqual([]);
    const literal = diluScale({ ...diluScaleDefaults, surgeSamples: 20 });
    expect(literal(viewWith([functionOf(seconds(19, 299))], instances(1))).launch).toEqual([]);
  });

  test('retires one instance a second with more than thirty seconds below what the others would serve', () => {
    expect(changes(functionOf(seconds(10, 250, 90)), instances(3))).toEqual([0, []]);
    const lower = functionOf(seconds(31, 90, 130));
    expect(changes(lower, instances(3))).toEqual([0, ['i0']]);
    expect(changes(lower, instances(2))).toEqual([0, ['i0']]);
    expect(changes(lower, instances(1))).toEqual([0, []]);
    const [busy, loading] = [instanceOf('busy'), instanceOf('loading', { state: 'loading' })];
    const idle = [90_000, 80_000].map((idleSince) => instanceOf(`${idleSince}`, { state: 'idle', idleSince }));
    expect(changes(lower, [busy, loading])).toEqual([0, ['loading']]);
    expect(changes(lower, [busy, loading, ...idle])).toEqual([0, ['80000']]);
  });

  test('retires no instance that a rate lower by a tenth calls for', () => {
    expect(changes(functionOf(seconds(2, 290)), instances(3))).toEqual([0, []]);
    expect(changes(functionOf(seconds(2, 270)), instances(3))).toEqual([0, ['i0']]);
  });

  test('keeps the last instance for the keep-alive time, and leaves functions of unknown time to their requests', () => {
    const brief = diluScale({ ...diluScaleDefaults, keepAliveS: 30 });
    const idle = (idleSince: number): InstanceState => instanceOf('one', { state: 'idle', idleSince });
    expect(brief(viewWith([functionOf([])], [idle(at - 29_000)])).retire).toEqual([]);
    expect(brief(viewWith([functionOf([])], [idle(at - 30_000)])).retire).toHaveLength(1);
    expect(brief(viewWith([], [idle(at - 30_000)])).retire).toHaveLength(1);
    const unknown = functionOf(seconds(40, 900));
    delete unknown.served;
    expect(changes(unknown, instances(2))).toEqual([0, []]);
  });

  test('beside a forecast launches what either wants, and retires only what neither wants', () => {
    const both = diluWithForecast(diluForecastDefaults);
    // 100 ms a run: 30 at a time.
    const forecast = { requests: 18_000, active: 1 };
    const expected = functionOf([], { forecast, runMs: 100 });
    const wanted = both(viewWith([expected], instances(1))).launch[0]?.count ?? 0;
    expect(wanted).toBeGreaterThanOrEqual(29);
    expect(both(viewWith([expected], instances(wanted + 1))).retire).toEqual([]);
    expect(both(viewWith([expected], instances(wanted + 2))).retire).toHaveLength(1);
    const missed = functionOf(seconds(20, 290), { forecast: { requests: 0, active: 0 }, runMs: 100 });
    expect(both(viewWith([missed], instances(1))).launch).toMatchObject([{ count: 2 }]);
  });

  test.each([
    [{ windowS: 60 }, "setting 'windowS' is 60 and not a whole number from 2 to 59"],
    [{ outSamples: 41 }, "setting 'outSamples' is 41 and not a whole number from 1 to 40"],
    [{ surgeSamples: 0 }, "setting 'surgeSamples' is 0 and not a whole number from 1 to 40"],
    [{ inSamples: 19 }, "setting 'inSamples' is 19 and not a whole number from 20 to 39"],
    [{ inSamples: 30.5 }, "setting 'inSamples' is 30.5"],
  ])('refuses %j', (wrong, message) => {
    expect(() => diluScale({ ...diluScaleDefaults, ...wrong })).toThrow(message);
  });
});

test('the profile of the slowest kind of GPU tells what an instance serves, unless its owner has fixed the share', () => {
  const of = (gpuType: string, ms: number, limitMs?: number): ProfiledShares => ({
    ...{ gpuType, mode: 'mps' as const, request: 300, limit: 600, batch: 4, ms },
    ...(limitMs !== undefined && { limitMs }),
  });
  const profiledShares = [of('a', 100, 50), of('b', 200), of('c', 400, 300)];
  const kinds = ['a', 'b', 'none'].map((gpuType) => ({ gpuType, mode: 'mps' as const }));
  expect(profiledRates({ profiledShares }, kinds)).toEqual({ request: 20, limit: 20 });
  expect(profiledRates({ profiledShares }, kinds.slice(0, 1))).toEqual({ request: 40, limit: 80 });
  expect(profiledRates({ profiledShares }, [])).toBeUndefined();
  expect(profiledRates({ profiledShares, share: 0.5 }, kinds)).toBeUndefined();
  expect(profiledRates({}, kinds)).toBeUndefined();
});

test('an instance serves what was profiled, else what its time says at its share', () => {
  const features = { smUtil: 0.6, dramUtil: 0, l2Util: 0 };
  const of = functionOf([], { task: taskOf('t', { batch: 4, soloMs: 20, features }), runMs: 80 });
  expect(servedBy(of, instances(1))).toEqual(served);
  delete of.served;
  expect(servedBy(of, instances(1))).toEqual({ request: 100, limit: 200 });
  expect(servedBy({ ...of, task: taskOf('t', { batch: 4 }) }, [])).toEqual({ request: 50, limit: 50 });
  expect(servedBy(functionOf([], { served: undefined } as never), [])).toBeUndefined();
});

describe('a policy that scales lazily', () => {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const lazy: PolicyChoice = { ...fillingInTurn, scale: 'dilu' };
  const startsOf = (choice: PolicyChoice, gpus: readonly ReportedPlace[], arrived: readonly number[]): string[] => {
    const waiting = arrived.map((arrivedAt, i) => taskOf(`t${i}`, { share: 0.2, arrivedAt }));
    const { starts, order } = makePolicy(choice, needs).decide(viewOf({ at, gpus, waiting }), { kind: 'timer' });
    expect(starts.length + order.length).toBe(waiting.length);
    return starts.map(({ task, gpu }) => `${task} ${gpu}`);
  };
  const busy = gpuOf('g0', { running: [runningTask(taskOf('r'), 0.2)] });
  const idle = gpuOf('g1', { idle: [{ function: '/a/f', namespace: 'a', share: 0.2, memoryMiB: 1000 }] });

  test('has requests wait for the instances of their function, the first to come first, but for 30 s at most', () => {
    expect(startsOf(fillingInTurn, [busy, gpuOf('g2')], [at, at])).toHaveLength(2);
    expect(startsOf(lazy, [busy, gpuOf('g2')], [at, at])).toEqual([]);
    expect(startsOf(lazy, [busy, idle, gpuOf('g2')], [at, at - 1])).toEqual(['t1 g1']);
    expect(startsOf(lazy, [busy], [at, at - 30_000])).toHaveLength(1);
  });

  test('serves those first that can still meet their SLO', () => {
    const arrived = [at - 950, at - 500, at - 2000];
    const waiting = arrived.map((arrivedAt, i) => taskOf(`t${i}`, { share: 0.2, arrivedAt, sloMs: 1000, soloMs: 100 }));
    const first = (tasks: typeof waiting): string | undefined =>
      makePolicy(lazy, needs).decide(viewOf({ at, gpus: [busy, idle], waiting: tasks }), { kind: 'timer' }).starts[0]
        ?.task;
    // The first has 50 ms left for 100 ms of work, and the SLO of the third has passed.
    expect(first(waiting)).toBe('t1');
    expect(first(waiting.filter(({ id }) => id !== 't1'))).toBe('t2');
    // A profiled batch at its limit takes longer than the second has left.
    const profile = { gpuType: 't', mode: 'mps', request: 100, limit: 200, batch: 1, ms: 900, limitMs: 600 } as const;
    expect(first(waiting.map((task) => ({ ...task, profiledShares: [profile] })))).toBe('t2');
  });

  test('starts one instance of a function that has none, and says why others wait', () => {
    expect(startsOf(lazy, [gpuOf('g2')], [at, at, at])).toHaveLength(1);
    const waiting = [taskOf('t', { arrivedAt: at })];
    const { rejected } = makePolicy(lazy, needs).decide(viewOf({ at, gpus: [busy], waiting }), { kind: 'timer' });
    expect(rejected).toMatchObject([{ task: 't', what: 'g0', reason: expect.stringContaining('are busy') }]);
  });

  test('has requests join the next batch of a busy instance, and the others wait', () => {
    const own = taskOf('r', { share: 0.2, batch: 2 });
    const gpus = [gpuOf('g0', { running: [runningTask(own, 0.2)] }), gpuOf('g2')];
    const ledger = ledgerWith(gpus);
    const request = { ...requestOfTask(own), batch: 2 };
    const waiting = Array.from({ length: 5 }, (_, i) => ({ ...own, id: `t${i}`, arrivedAt: at, request }));
    const { starts, order } = makePolicy(lazy, needs).decide(viewOf({ at, gpus, waiting, ledger }), { kind: 'timer' });
    // One runs: three make two batches of it.
    expect([starts.map(({ gpu }) => gpu), order]).toEqual([Array(3).fill('g0'), ['t3', 't4']]);
  });

  test('has requests of a batch go to the instance that has the fewest, and to none that is yet to load beside others', () => {
    const own = taskOf('r', { share: 0.2, batch: 2 });
    const request = { ...requestOfTask(own), batch: 2 };
    const placesOf = (gpus: readonly ReportedPlace[], requests: number): string[] => {
      const waiting = Array.from({ length: requests }, (_, i) => ({ ...own, id: `t${i}`, arrivedAt: at, request }));
      const view = viewOf({ at, gpus, waiting, ledger: ledgerWith(gpus) });
      return makePolicy(lazy, needs)
        .decide(view, { kind: 'timer' })
        .starts.map(({ gpu }) => gpu);
    };
    const runs = gpuOf('g0', { running: [runningTask(own, 0.2)] });
    expect(placesOf([runs, idle], 1)).toEqual(['g1']);
    expect(placesOf([runs, idle], 3)).toEqual(['g1', 'g0', 'g1']);
    expect(placesOf([runs, idle], 9)).toHaveLength(7);
  });

  const truth = {
    noise: 0,
    slowdowns: (clients: readonly unknown[]) => new Float64Array(clients.length).fill(1),
    used: () => 1,
  };
  const run = (policy: PolicyChoice): ReplayRun => {
    // For three minutes 15 a second, each of 100 ms: one and a half instances; a burst of a second before that.
    const arrivals = [
      ...Array.from({ length: 15 }, (_, i) => 5000 + (i * 1000) / 15),
      ...Array.from({ length: 2700 }, (_, i) => 60_000 + (i * 1000) / 15),
    ];
    const jobs = arrivals.map((arrivedAt, i): ReplayJob => {
      const task = taskOf(`t${i}`, { arrivedAt, soloMs: 100, startMs: 2000, share: 0.2 });
      return { workload: 'f', soloMs: 100, startMs: 2000, task };
    });
    const places = [{ id: 'g0', node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000 }];
    const made = makePolicy(policy, needs);
    return replay(jobs, { places, warmMs: 1 }, truth, made, seededRandom(1));
  };
  const starts = ({ finished, actions }: ReplayRun): number => {
    const cold = finished.filter(({ finishedAt, startedAt }) => finishedAt - startedAt >= 2000).length;
    return cold + actions.filter(({ action }) => action.kind === 'launch').length;
  };

  test('sits a burst out, and launches for load that lasts, in replay', () => {
    // Its limit is its request, so that no share serves the burst: two seconds of it are waited for.
    const scaled = run({ base: 'least-loaded', scale: 'dilu', settings: { surgeSamples: 2 } });
    const launches = scaled.actions.filter(({ action }) => action.kind === 'launch');
    expect(scaled.finished).toHaveLength(2715);
    expect(launches.map(({ at: when }) => when > 60_000)).not.toContain(false);
    expect([launches.length > 0, starts(scaled) <= 4]).toEqual([true, true]);
    expect(starts(run('least-loaded'))).toBeGreaterThan(starts(scaled));
  });
});

test('counts of a view are those that the stage looks at', () => {
  const arrivals = new ArrivalCounts();
  for (let second = 0; second < 40; second += 1)
    for (let i = 0; i < 140; i += 1) arrivals.add(at - 40_000 + second * 1000 + i);
  const of = { ...functionOf([]), arrivals };
  expect(diluScale(diluScaleDefaults)(viewWith([of], instances(1))).launch).toMatchObject([{ count: 1 }]);
});
