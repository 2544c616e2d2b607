// SMORE beside training jobs: bounds, order, places, modes, marks and the guard.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { DegradationModel } from '../../predict/degradation.js';
import { dividedSms, fillingInTurn, gpuOf, profiledTask, runningTask } from '../../testing/fixtures.js';
import type { Action, Decision } from '../../view/decision.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { InstanceState, SchedulingEvent, Task, View, WorkloadState } from '../../view/view.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import { makePolicy } from '../../policies/make-policy.js';
import type { Policy } from '../../policies/policy.js';
import { viewOf } from '../../testing/views.js';

/** Degradations (D) that workloads and functions of a name inflict and suffer, the same for each neighbour. */
type Costs = Readonly<Record<string, { train?: number; own?: number }>>;

/** Each function slows every workload by its `train`, and gets slower by its `own` where a workload is. */
const additive = (costs: Costs): DegradationModel => ({
  term(victim, neighbour) {
    const costOf = (name: string): Costs[string] => costs[name.split('/').at(-1) ?? ''] ?? {};
    if (victim.kind === 'workload') return (costOf(neighbour.name).train ?? 0) * (victim.name === 'delicate' ? 2 : 1);
    return neighbour.kind === 'workload' ? (costOf(victim.name).own ?? 0) : 0;
  },
});

function policyOf(
  costs: Costs,
  choice: PolicyChoice = 'smore',
  admission: 'refuse' | 'best-effort' = 'refuse',
): Policy {
  const predictor = additive(costs);
  return makePolicy(choice, {
    predictorOf: () => dividedSms,
    degradationsOf: () => predictor,
    random: seededRandom(1),
    admission,
  });
}

const call = (name: string, changes: Partial<Task> = {}): Task =>
  profiledTask(name, 100, 0.3, { function: `/a/${name}`, ...changes });
const training = (device: string, changes: Partial<WorkloadState> = {}): WorkloadState => {
  return { id: `w-${device}`, name: 'steady', node: 'n', device, tolerated: 0.1, ...changes };
};
const timer: SchedulingEvent = { kind: 'timer' };
const on = ({ starts }: Decision, task: string): string | undefined => starts.find((one) => one.task === task)?.gpu;

function view(gpus: ReportedPlace[], workloads: WorkloadState[], waiting: Task[], at = 0): View {
  return viewOf({ at, gpus, workloads, waiting });
}

describe('places', () => {
  test('the one of least weighted degradation is taken', () => {
    const gpus = [gpuOf('g0'), gpuOf('g1')];
    const workloads = [training('g0', { name: 'delicate' }), training('g1')];
    const decide = (settings: Record<string, number>): Decision =>
      policyOf({ f: { train: 0.02, own: 0.5 } }, { base: 'smore', settings }).decide(
        view(gpus, workloads, [call('f')]),
        timer,
      );
    expect(on(decide({}), 'f')).toBe('g1');
    expect(on(decide({ trainWeight: 0 }), 'f')).toBe('g0');
  });

  test('none is taken where a workload would be slower than it tolerates, and the reason names both figures', () => {
    const gpus = [gpuOf('g0')];
    const decided = policyOf({ f: { train: 0.08 } }).decide(
      view(gpus, [training('g0', { name: 'delicate' })], [call('f')]),
      timer,
    );
    expect([decided.starts, decided.order]).toEqual([[], ['f']]);
    expect(decided.rejected).toEqual([
      {
        ...{ task: 'f', what: 'g0', reason: 'a workload would become slower there than it tolerates' },
        // A tenth of the rate is a ninth of the time.
        numbers: { degradation: 0.16, bound: 0.1 / 0.9 },
      },
    ]);
    const able = policyOf({ f: { train: 0.08 } }).decide(view(gpus, [training('g0')], [call('f')]), timer);
    expect(on(able, 'f')).toBe('g0');
  });

  test('functions of which each fits beside a workload are not put there together where they do not', () => {
    const figures = { features: { smUtil: 0.4 } };
    const [known, workloads] = [call('r', figures), [training('g0', figures)]];
    const decide = (choice: PolicyChoice, smUtil: number): Decision => {
      const policy = policyOf({}, choice);
      expect(on(policy.decide(view([gpuOf('g0')], workloads, [known]), timer), 'r')).toBe('g0');
      const running = [runningTask(known, 0.4)];
      const waiting = [call('f', { features: { smUtil } })];
      return policy.decide(view([gpuOf('g0', { running })], workloads, waiting), timer);
    };
    expect(on(decide('smore', 0.25), 'f')).toBe('g0');
    expect(decide('smore', 0.4).rejected).toMatchObject([
      { reason: 'a workload would become slower there than it tolerates' },
    ]);
    const pairsAlone = { base: 'smore', settings: { countsExcess: 0 } };
    expect(on(decide(pairsAlone, 0.4), 'f')).toBe('g0');
  });

  test.each<PolicyChoice>([
    { base: 'smore', scale: 'reactive' },
    { base: 'least-loaded', scale: 'reactive', order: 'smore', share: 'filling', place: 'smore' },
  ])('instances ahead of requests go where requests would, each counting on those before it (%o)', (choice) => {
    const gpus = [gpuOf('g0'), gpuOf('g1'), gpuOf('g2')];
    const workloads = [training('g0', { name: 'delicate' }), training('g1'), training('g2')];
    const launched = (train: number): [string, readonly string[]][] => {
      const task = call('f', { share: 0.3, startMs: 60_000, sloMs: 1000 });
      const arrivals = { bySecond: () => new Uint32Array(61).fill(14), byMinute: () => new Uint32Array(0) };
      const wanted = { ...view(gpus, workloads, []), functions: [{ task, arrivals }], instances: [] };
      const { actions = [] } = policyOf({ f: { train } }, choice).decide(wanted, { kind: 'tick' });
      return actions.flatMap((one) => (one.kind === 'launch' ? [[one.function, one.gpus]] : []));
    };
    // Two are wanted; the load alone would have g0 first.
    expect(launched(0.08)).toEqual([
      ['/a/f', ['g1']],
      ['/a/f', ['g2']],
    ]);
    expect(launched(0.2)).toEqual([]);
  });

  test('workloads of one name with different figures are told apart', () => {
    const gpus = [gpuOf('g0'), gpuOf('g1')];
    const workloads = [training('g0', { features: { smUtil: 1 } }), training('g1', { features: { smUtil: 0.5 } })];
    const policy = makePolicy('smore', { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'refuse' });
    expect(on(policy.decide(view(gpus, workloads, [call('f')]), timer), 'f')).toBe('g1');
    expect(policy.decide(view([gpus[0]!], workloads, [call('f')]), timer).starts).toEqual([]);
  });

  test('what starts in a pass counts for those after it', () => {
    const calls = ['a', 'b', 'c'].map((id) => ({ ...call('f'), id }));
    const { starts, order } = policyOf({ f: { train: 0.05 } }).decide(
      view([gpuOf('g0')], [training('g0')], calls),
      timer,
    );
    expect([starts.length, order.length]).toEqual([2, 1]);
  });

  test('a workload that is slower than it tolerates gets no more neighbours, and none stays away without cause', () => {
    const decide = (changes: Partial<WorkloadState>): Decision =>
      policyOf({}).decide(view([gpuOf('g0')], [training('g0', changes)], [call('f')]), timer);
    expect(on(decide({ measured: 0.09 }), 'f')).toBe('g0');
    expect(decide({ state: 'stale' }).starts).toEqual([]);
    expect(decide({ measured: 0.11 }).rejected).toMatchObject([
      { reason: 'a workload is slower there than it tolerates, or has stopped reporting' },
    ]);
  });

  test('a deadline counts with the degradation and the start', () => {
    const policy = (): Policy => policyOf({ f: { own: 0.5 } });
    const workloads = [training('g0')];
    const strict = (sloMs: number, startMs = 0): Decision =>
      policy().decide(view([gpuOf('g0')], workloads, [call('f', { sloMs, startMs })]), timer);
    expect(on(strict(151), 'f')).toBe('g0');
    expect(strict(149).rejected).toMatchObject([{ reason: 'it would miss its deadline there' }]);
    expect(strict(160, 20).order).toEqual(['f']);
    // Too late for any place: it is refused.
    expect(strict(99).refused).toMatchObject([{ task: 'f' }]);
  });

  test('a twentieth of the memory stays free where processes share it, and one alone may have all', () => {
    const large = (memoryMiB: number): Task => call('f', { memoryMiB });
    const beside = gpuOf('g0', { running: [runningTask(call('r', { memoryMiB: 5000 }), 0.3)] });
    const decide = (gpu: ReportedPlace, task: Task): Decision => policyOf({}).decide(view([gpu], [], [task]), timer);
    expect(on(decide(beside, large(4500)), 'f')).toBe('g0');
    expect(decide(beside, large(4501)).rejected).toMatchObject([
      { reason: 'too little memory would be left beside others' },
    ]);
    expect(on(decide(gpuOf('g0'), large(10_000)), 'f')).toBe('g0');
  });
});

describe('the queue', () => {
  test('serves first what uses most of the GPU for each unit that it suffers', () => {
    const policy = policyOf({});
    const gpu = { id: 'g0', gpuType: 't', mode: 'mps' } as const;
    const ran = (name: string, ranMs: number): void => {
      const beside = [{ task: call('other'), share: 0.3, part: 1 }];
      policy.observe?.({ task: call(name), gpu, share: 0.3, ranMs, beside });
    };
    ran('robust', 101);
    ran('frail', 150);
    const full = gpuOf('g0', { memoryMiB: 1000 });
    const waiting = [call('frail'), call('robust')];
    expect(on(policy.decide(view([full], [], waiting), timer), 'robust')).toBe('g0');
    // One that has waited for too long is not overtaken.
    const old = [call('frail', { arrivedAt: -31_000 }), call('robust')];
    expect(on(policy.decide(view([full], [], old), timer), 'frail')).toBe('g0');
  });

  test('tries a task without a place later each time, and at once when a run has ended', () => {
    const policy = policyOf({ f: { train: 1 } });
    const at = (ms: number, event: SchedulingEvent = timer): Decision =>
      policy.decide(view([gpuOf('g0')], [training('g0')], [call('f')], ms), event);
    expect([0, 10, 30].map((ms) => at(ms).wakeAt)).toEqual([10, 30, 70]);
    const early = at(40);
    expect([early.wakeAt, early.rejected]).toEqual([70, []]);
    expect(at(50, { kind: 'completion', task: 'r', gpu: 'g0' }).rejected).toHaveLength(1);
  });

  test('is asked again when the latest start of a strict task passes, and refuses it then', () => {
    const policy = policyOf({ f: { train: 1 } });
    const decide = (at: number): Decision =>
      policy.decide(view([gpuOf('g0')], [training('g0')], [call('f', { sloMs: 105 })], at), timer);
    expect(decide(0).wakeAt).toBe(5);
    expect(decide(6).refused).toMatchObject([{ task: 'f', reason: 'it needs 100 ms, and its SLO leaves 99' }]);
  });

  test('takes the first of a few drawn places under load, until the load has fallen', () => {
    const policy = policyOf({ f: { train: 1 } });
    const many = (count: number): Task[] => Array.from({ length: count }, (_, at) => ({ ...call('f'), id: `f${at}` }));
    const gpus = ['g0', 'g1', 'g2', 'g3', 'g4', 'g5'].map((id) => gpuOf(id));
    const workloads = gpus.slice(1).map(({ id }) => training(id));
    const reasonWith = (waiting: number, on = gpus): string | undefined => {
      const { starts } = policy.decide(view(on, workloads, [call('able'), ...many(waiting)]), timer);
      return starts.find(({ task }) => task === 'able')?.reason;
    };
    expect(reasonWith(11)).toBe('least degradation');
    expect(reasonWith(12)).toBe('will do, of those drawn');
    expect(reasonWith(2)).toBe('will do, of those drawn');
    // Of five places or fewer, all are looked at.
    expect(reasonWith(12, gpus.slice(0, 5))).toBe('least degradation');
    expect(reasonWith(2)).toBe('will do, of those drawn');
    expect(reasonWith(1)).toBe('least degradation');
  });
});

describe('single stages beside others', () => {
  test('place: a bound or a deadline refuses a GPU, and the least degradation is taken', () => {
    const gpus = [gpuOf('g0'), gpuOf('g1')];
    const workloads = [training('g0', { name: 'delicate' }), training('g1')];
    const decide = (costs: Costs, changes: Partial<Task> = {}): Decision =>
      policyOf(costs, { ...fillingInTurn, place: 'smore' }).decide(view(gpus, workloads, [call('f', changes)]), timer);
    expect(on(decide({ f: { train: 0.02 } }), 'f')).toBe('g1');
    expect(decide({ f: { train: 0.2 } }).rejected).toMatchObject([
      { what: 'g0', reason: 'a workload would become slower there than it tolerates', numbers: { degradation: 0.4 } },
      { what: 'g1', reason: 'a workload would become slower there than it tolerates', numbers: { degradation: 0.2 } },
    ]);
    expect(decide({ f: { own: 0.6 } }, { sloMs: 150 }).rejected[0]).toMatchObject({
      reason: 'it would miss its deadline there',
    });
  });

  test('order: what suffered beside a workload goes later', () => {
    const policy = policyOf({}, { ...fillingInTurn, order: 'smore' });
    const [full, workloads] = [gpuOf('g0', { memoryMiB: 1000 }), [training('g0')]];
    const waiting = [call('frail'), call('robust')];
    expect(on(policy.decide(view([full], workloads, waiting), timer), 'frail')).toBe('g0');
    policy.observe?.({
      task: call('frail'),
      gpu: { id: 'g0', gpuType: 't', mode: 'mps' },
      share: 0.3,
      ranMs: 150,
      beside: [],
    });
    expect(on(policy.decide(view([full], workloads, waiting), timer), 'robust')).toBe('g0');
    const restored = policyOf({}, { ...fillingInTurn, order: 'smore' });
    restored.restore?.(structuredClone(policy.saved?.()));
    expect(on(restored.decide(view([full], workloads, waiting), timer), 'robust')).toBe('g0');
  });
});

describe('marks', () => {
  test('a place where runs take longer than predicted comes last, until twenty runs do not', () => {
    const policy = policyOf({});
    const gpus = [gpuOf('g0'), gpuOf('g1')];
    const run = (ranMs: number): string | undefined => {
      const decided = policy.decide(view([gpus[0]!], [training('g0')], [call('f')]), timer);
      policy.observe?.({
        task: call('f'),
        gpu: { id: 'g0', gpuType: 't', mode: 'mps' },
        share: 0.3,
        ranMs,
        beside: [],
      });
      return on(decided, 'f');
    };
    const best = (): string | undefined => on(policy.decide(view(gpus, [], [call('f')]), timer), 'f');
    for (let runs = 0; runs < 9; runs += 1) run(106);
    expect(best()).toBe('g0');
    // It is last, and still used where there is no other.
    expect(run(106)).toBe('g0');
    expect(best()).toBe('g1');
    expect(run(100)).toBe('g0');
    for (let runs = 0; runs < 18; runs += 1) run(100);
    expect(best()).toBe('g1');
    run(100);
    expect(best()).toBe('g0');
    const copy = policyOf({});
    for (let runs = 0; runs < 10; runs += 1) run(200);
    copy.restore?.(JSON.parse(JSON.stringify(policy.saved?.())));
    expect(on(copy.decide(view(gpus, [], [call('f')]), timer), 'f')).toBe('g1');
  });
});

describe('the guard', () => {
  const instance = (id: string, limit: number, task: string): InstanceState => ({
    ...{ id, function: '/a/f', namespace: 'a', gpus: ['g0'], memoryMiB: 1000, state: 'running', tasks: [task] },
    share: { request: limit, limit, class: 0.5 },
  });
  const running = [
    runningTask(call('strict', { sloMs: 1000 }), 0.5),
    runningTask(call('effort'), 0.3),
    runningTask(call('small'), 0.1),
  ];
  function actions(
    measured: number,
    movesShares: boolean,
    instances: InstanceState[],
    event: SchedulingEvent,
  ): Action[] {
    const gpu = gpuOf('g0', { running, movesShares });
    const seen: View = { ...view([gpu], [training('g0', { measured })], []), instances };
    return [...(policyOf({}).decide(seen, event).actions ?? [])];
  }
  const all = [instance('i0', 0.5, 'strict'), instance('i1', 0.3, 'effort'), instance('i2', 0.1, 'small')];
  const tick: SchedulingEvent = { kind: 'tick' };
  // Of 0.1 tolerated: about as much as one of three may cost, if each costs a third.
  const [slightly, much] = [0.14, 0.5];

  test('holds the largest best effort back where shares can be moved, and stops what has the least already', () => {
    expect(actions(slightly, true, all, tick)).toMatchObject([
      { kind: 'reshare', instance: 'i1', limit: 0.15, request: 0.15, whileBusy: true },
    ]);
    expect(actions(slightly, true, [all[0]!, all[2]!], tick)).toMatchObject([
      { kind: 'retire', instance: 'i2', graceMs: 0 },
    ]);
    expect(actions(slightly, true, [all[0]!], tick)).toMatchObject([{ kind: 'reshare', instance: 'i0', limit: 0.25 }]);
  });

  test('stops functions where shares stay, and not while the workload is fast enough', () => {
    expect(actions(slightly, false, all, tick)).toMatchObject([{ kind: 'retire', instance: 'i1' }]);
    expect(actions(slightly, false, [], tick)).toEqual([]);
    expect(actions(0.1, false, all, tick)).toEqual([]);
    expect(actions(slightly, false, all, timer)).toEqual([]);
  });

  test('stops as many as would do if all had equal parts in the degradation', () => {
    const stopped = (measured: number): unknown[] =>
      actions(measured, false, all, tick).map((one) => 'instance' in one && one.instance);
    expect(stopped(slightly)).toEqual(['i1']);
    expect(stopped(0.2)).toEqual(['i1', 'i2']);
    expect(stopped(much)).toEqual(['i1', 'i2', 'i0']);
    expect(stopped(1)).toEqual(['i1', 'i2', 'i0']);
  });

  test('answers each report of a workload once, as soon as it has come', () => {
    const policy = policyOf({});
    const answers = (reportedAt: number, event: SchedulingEvent): number => {
      const workloads = [training('g0', { measured: much, reportedAt })];
      const seen = { ...view([gpuOf('g0', { running })], workloads, []), instances: all };
      return policy.decide(seen, event).actions?.length ?? 0;
    };
    const report: SchedulingEvent = { kind: 'report' };
    expect([answers(1000, report), answers(1000, tick), answers(1000, report)]).toEqual([3, 0, 0]);
    expect([answers(2000, tick), answers(2000, report), answers(3000, report)]).toEqual([3, 0, 3]);
  });
});
