import { describe, expect, test } from '@jest/globals';
import { compositionOf } from '../../policies/make-policy.js';
import { taskOf } from '../../testing/fixtures.js';
import { ArrivalCounts } from '../../view/function-log.js';
import type { FunctionState, InstanceState } from '../../view/view.js';
import { hhpScale, histogramScaleDefaults, lsthScale, smoreScale, smoreScaleDefaults } from './forecast.js';
import type { ScaledView } from './scale.js';

const minuteMs = 60_000;

function instanceOf(id: string, idleSince?: number): InstanceState {
  const share = { request: 1, limit: 1, class: 1 };
  return {
    ...{ id, function: '/a/f', namespace: 'a', gpus: ['g'], share, memoryMiB: 1, tasks: [] },
    state: idleSince === undefined ? 'running' : 'idle',
    ...(idleSince !== undefined && { idleSince }),
  };
}

function viewOf(at: number, functions: FunctionState[], instances: InstanceState[] = []): ScaledView {
  return { at, waiting: [], functions, instances };
}

function functionOf(changes: Partial<FunctionState> = {}): FunctionState {
  return { task: taskOf('t'), arrivals: new ArrivalCounts(), runMs: 10_000, ...changes };
}

describe('smore', () => {
  const scale = smoreScale(smoreScaleDefaults);
  const forecast = { requests: 60, active: 1 };

  test('launches as many instances as run at a time with the probability, less those that are there', () => {
    const { launch, retire } = scale(viewOf(0, [functionOf({ forecast })], [instanceOf('i'), instanceOf('j', 0)]));
    // P(Poisson(60 requests a minute × 10 s) ≤ 16) ≈ 0.973, of 18 0.993.
    expect(launch.map(({ count, reason }) => [count, reason])).toEqual([[16, '18 wanted for its forecast, 2 there']]);
    expect(retire).toEqual([]);
  });

  test('counts a batch as one run', () => {
    const task = taskOf('t', { batch: 10 });
    const [launch] = scale(viewOf(0, [functionOf({ forecast, task })])).launch;
    // Poisson(1): 0.996 up to 4.
    expect(launch?.count).toBe(4);
  });

  test('retires after the cool-down what no forecast wants', () => {
    const unlikely = functionOf({ forecast: { requests: 0.005, active: 0.005 } });
    const view = viewOf(200_000, [unlikely], [instanceOf('old', 80_000), instanceOf('new', 81_000), instanceOf('i')]);
    expect(scale(view)).toEqual({
      launch: [],
      retire: [{ instance: 'old', reason: 'not wanted, and idle for 120 s' }],
    });
    expect(scale(viewOf(200_000, [functionOf()], [instanceOf('old', 0)])).retire).toHaveLength(1);
  });

  test('launches an instance of a function of unknown time, and refuses a quantile of 1', () => {
    const untimed: FunctionState = { task: taskOf('t'), arrivals: new ArrivalCounts(), forecast };
    expect(scale(viewOf(0, [untimed])).launch.map(({ count }) => count)).toEqual([1]);
    expect(() => smoreScale({ ...smoreScaleDefaults, quantile: 1 })).toThrow("setting 'quantile' is 1");
  });
});

describe.each([
  ['hhp', hhpScale],
  ['lsth', lsthScale],
])('%s', (name, make) => {
  const scale = make(histogramScaleDefaults);
  const arrivals = new ArrivalCounts();
  // A call each tenth minute: nine idle minutes.
  for (let minute = 0; minute <= 600; minute += 10) arrivals.add(minute * minuteMs);
  const wanted = (minute: number): number => {
    const { launch } = scale(viewOf(minute * minuteMs + 30_000, [functionOf({ arrivals })]));
    return launch[0]?.count ?? 0;
  };

  test('wants an instance shortly before the next call is due, and after it for a while', () => {
    expect([601, 605, 608, 609, 610, 611].map(wanted)).toEqual([0, 0, 0, 1, 1, 1]);
  });

  test('retires an instance outside the window once it has idled for a minute', () => {
    const at = 602 * minuteMs;
    const { retire } = scale(
      viewOf(at, [functionOf({ arrivals })], [instanceOf('a', at - 60_000), instanceOf('b', at - 59_000)]),
    );
    expect(retire.map(({ instance }) => instance)).toEqual(['a']);
  });

  test('wants nothing of a function without a request, and can be named by a policy', () => {
    expect(scale(viewOf(0, [functionOf()])).launch).toEqual([]);
    expect(compositionOf({ base: 'least-loaded', scale: name }).stages.scale).toBe(name);
  });
});
