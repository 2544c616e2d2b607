import { describe, expect, test } from '@jest/globals';
import type { DeviceHealth } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor } from '../../predict/slowdown-predictor.js';
import type { QuotaChoice, Quotas } from '../../share/quotas.js';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyNeeds } from '../../policies/make-policy.js';
import type { Decision } from '../../view/decision.js';
import { requestOfTask } from '../../view/requests.js';
import type { Policy } from '../../policies/policy.js';
import type { RunningTask, SchedulingEvent, Task } from '../../view/view.js';
import { dividedSms, gpuOf, profiledTask, runningTask, taskOf } from '../../testing/fixtures.js';
import { ledgerWith, viewOf } from '../../testing/views.js';
import type { ViewParts } from '../../testing/views.js';

const make = (changes: Partial<PolicyNeeds> = {}): Policy =>
  makePolicy('faashare', {
    ...{ predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1), ...changes },
  });
const decide = (snapshot: ViewParts, policy = make(), event: SchedulingEvent = { kind: 'timer' }): Decision =>
  policy.decide(viewOf({ gpus: [gpuOf('g0')], ...snapshot }), event);
const where = ({ starts }: Decision): unknown[] => starts.map(({ task, gpu, share }) => [task, gpu, share]);

describe('order', () => {
  test('goes by deadline while a strict task could be late, and else by length', () => {
    const busy = gpuOf('g0', { mode: 'exclusive', running: [runningTask(profiledTask('r', 5000, 1), 1)] });
    const waiting = [
      profiledTask('long', 1000, 1),
      profiledTask('lax', 900, 1, { sloMs: 60_000 }),
      profiledTask('short', 800, 1),
      profiledTask('late', 950, 1, { sloMs: 2000 }),
      profiledTask('urgent', 1000, 1, { sloMs: 1100 }),
    ];
    expect(decide({ gpus: [busy], waiting }).order).toEqual(['urgent', 'late', 'short', 'lax', 'long']);
  });

  test('overdue best effort takes a quarter of the GPUs while strict tasks wait that can be in time', () => {
    const at = 30_000;
    const gpus = ['g0', 'g1', 'g2', 'g3', 'g4', 'g5', 'g6', 'g7'].map((id) => gpuOf(id, { mode: 'exclusive' }));
    const old = [1, 2, 3, 4].map((n) => profiledTask(`old${n}`, 100, 1, { arrivedAt: n - 4 }));
    const strict = Array.from({ length: 8 }, (_, n) => profiledTask(`s${n}`, 100, 1, { arrivedAt: at, sloMs: 150 }));
    const started = (waiting: Task[]): string[] => decide({ at, gpus, waiting }).starts.map(({ task }) => task);
    expect(started([...old, ...strict]).filter((id) => id.startsWith('old'))).toEqual(['old1', 'old2']);
    expect(started(old)).toHaveLength(4);
    // Those that run count, and the others wait in the order in which they became overdue.
    const running = [1, 2].map((n) => runningTask(profiledTask(`old${n}`, 100, 1), 1, at));
    const taken = gpus.map((gpu, n) => ({ ...gpu, running: running.slice(n, n + 1) }));
    const rest = decide({ at: at + 10, gpus: taken, waiting: [...old.slice(2), ...strict] });
    expect(rest.starts.map(({ task }) => task)).toEqual(['s0', 's1', 's2', 's3', 's4', 's5']);
    expect(rest.order).toEqual(['s6', 's7', 'old3', 'old4']);
  });

  test('a task that has waited for 30 s is not overtaken in its namespace', () => {
    const gpus = [gpuOf('g0', { mode: 'exclusive' })];
    const at = 30_000;
    const waiting = [profiledTask('old', 5000, 1), profiledTask('strict', 100, 1, { arrivedAt: at, sloMs: 300 })];
    expect(where(decide({ at, gpus, waiting }))).toEqual([['old', 'g0', 1]]);
    expect(decide({ at: at - 1, gpus, waiting }).starts[0]?.task).toBe('strict');
  });

  test('a GPU is kept for one that has waited so long and needs more memory', () => {
    const gpus = [gpuOf('g0', { running: [runningTask(profiledTask('r', 1000, 0.2), 0.2)] })];
    const waiting = [
      profiledTask('large', 1000, 0.5, { memoryMiB: 9500 }),
      profiledTask('small', 1100, 0.1, { arrivedAt: 30_000 }),
    ];
    const found = decide({ at: 30_000, gpus, waiting });
    expect([found.starts, found.order]).toEqual([[], ['large', 'small']]);
    expect(found.rejected.at(-1)).toEqual({
      ...{ task: 'small', what: 'g0', reason: 'kept for one that waits for longer', numbers: {} },
    });
    const newcomer = { kind: 'arrival', task: 'small' } as const;
    expect(decide({ at: 30_000, gpus, waiting }, make(), newcomer).starts).toEqual([]);
  });

  test('a kept GPU is lent to a task that ends before the one that it is kept for could start', () => {
    const at = 30_000;
    const gpus = [gpuOf('g0', { running: [runningTask(profiledTask('r', 1000, 0.2), 0.2, at)] })];
    const waiting = [
      profiledTask('large', 1000, 0.5, { memoryMiB: 9500 }),
      profiledTask('small', 800, 0.1, { arrivedAt: at }),
    ];
    expect(where(decide({ at, gpus, waiting }))).toEqual([['small', 'g0', 0.1]]);
  });

  test.each(['exclusive', 'mps'] as const)(
    'a task on both GPUs, which serve it alone (%s), does not starve',
    (mode) => {
      const policy = make();
      const runMs = 1000;
      let running: (RunningTask & { on: string })[] = [];
      const startOf = (at: number): boolean => {
        const gpus = ['g0', 'g1'].map((id) => gpuOf(id, { mode, running: running.filter(({ on }) => on === id) }));
        const free = new Set(gpus.filter((gpu) => gpu.running.length === 0).map(({ id }) => id));
        const gang = profiledTask('gang', 500, 0.5, { gpus: 2, allowed: free });
        // A shorter and later task is always there.
        const small = [0, 1, 2, 3].map((n) =>
          profiledTask(`${at} ${n}`, runMs, 1, { arrivedAt: at, sloMs: 20 * runMs }),
        );
        const { starts } = decide({ at, gpus, waiting: [gang, ...small] }, policy);
        for (const { task, gpu } of starts) {
          const one = small.find(({ id }) => id === task);
          if (one !== undefined) running.push({ ...runningTask(one, 1, at), on: gpu });
        }
        return starts.some(({ task }) => task === 'gang');
      };
      // The first GPU is never free when the second one is.
      let at = 500;
      running = [
        { ...runningTask(profiledTask('r0', runMs, 1), 1, 0), on: 'g0' },
        { ...runningTask(profiledTask('r1', runMs, 1), 1, -500), on: 'g1' },
      ];
      for (; at < 60_000; at += 500) {
        running = running.filter(({ startedAt }) => at - startedAt < runMs);
        if (startOf(at)) break;
      }
      expect(at).toBeGreaterThanOrEqual(30_000);
      expect(at).toBeLessThanOrEqual(30_000 + 2 * runMs);
    },
  );

  test('namespaces take turns, however many tasks one has', () => {
    const policy = make();
    const gpus = [gpuOf('g0', { mode: 'exclusive' })];
    let waiting = [
      ...Array.from({ length: 20 }, (_, at) => profiledTask(`flood ${at}`, 500, 1)),
      ...['b', 'c'].flatMap((namespace) =>
        [0, 1].map((at) => profiledTask(`${namespace} ${at}`, 500, 1, { namespace, arrivedAt: 1 })),
      ),
    ];
    const started: string[] = [];
    for (let at = 1; at < 7; at += 1) {
      const [start] = decide({ at, gpus, waiting }, policy).starts;
      started.push(start!.task.slice(0, 1));
      waiting = waiting.filter(({ id }) => id !== start?.task);
    }
    expect(started.sort()).toEqual(['b', 'b', 'c', 'c', 'f', 'f']);
  });

  test('a namespace whose tasks took longer than predicted has its next turn later', () => {
    const policy = make();
    const gpus = [gpuOf('g0', { mode: 'exclusive' })];
    const waiting = ['a', 'b'].flatMap((namespace) =>
      [0, 1, 2].map((at) => profiledTask(`${namespace}${at}`, 100, 1, { namespace })),
    );
    const a0 = waiting[0]!;
    expect(decide({ gpus, waiting }, policy).starts[0]?.task).toBe('a0');
    policy.observe?.({
      task: a0,
      gpu: { id: gpus[0]!.id, gpuType: 't', mode: 'mps' },
      share: 1,
      ranMs: 250,
      beside: [],
    });
    const order = decide({ gpus: [], waiting: waiting.slice(1) }, policy).order;
    expect(order.slice(0, 2)).toEqual(['b0', 'b1']);
  });
});

describe('sets', () => {
  test('are spread over GPUs, and share one where memory and predictions allow', () => {
    const waiting = ['t0', 't1', 't2'].map((id) => profiledTask(id, 100, 0.3, { sloMs: 300, memoryMiB: 4000 }));
    const found = decide({ gpus: [gpuOf('g0'), gpuOf('g1')], waiting });
    expect(found.starts.map(({ gpu }) => gpu).sort()).toEqual(['g0', 'g0', 'g1']);
  });

  test('lose their last one while a task would miss its SLO', () => {
    const waiting = [0, 1, 2].map((at) => profiledTask(`t${at}`, 100, 0.7, { sloMs: 160 + at, memoryMiB: 2000 }));
    const found = decide({ waiting });
    // Alone 100 ms, two at a time 147: no task can wait until the first has ended.
    expect(found.starts.map(({ task }) => task)).toEqual(['t0', 't1']);
    expect(found.order).toEqual(['t2']);
    expect(found.rejected[0]).toMatchObject({ task: 't2', what: 'g0' });
  });

  test('are not joined by one that would have what runs miss its SLO', () => {
    const resident = runningTask(profiledTask('r', 100, 1, { sloMs: 115 }), 1);
    const waiting = [profiledTask('t', 100, 0.5, { sloMs: 195 })];
    expect(decide({ gpus: [gpuOf('g0', { running: [resident] })], waiting }).starts).toEqual([]);
    const late = { ...resident, task: { ...resident.task, sloMs: 90 } };
    expect(decide({ gpus: [gpuOf('g0', { running: [late] })], waiting }).starts).toHaveLength(1);
  });

  test('are joined only where the GPU does more for it, or by one that cannot wait', () => {
    const full = gpuOf('g0', { running: [runningTask(profiledTask('r', 1000, 1), 1)] });
    const waiting = [profiledTask('t', 1000, 0.9)];
    expect(decide({ gpus: [full], waiting }).starts).toEqual([]);
    const strict = (sloMs: number) => [profiledTask('t', 1000, 0.9, { sloMs })];
    const longer = gpuOf('g0', { running: [runningTask(profiledTask('r', 5000, 0.9), 0.9)] });
    expect(decide({ gpus: [longer], waiting: strict(6000) }).starts).toEqual([]);
    expect(decide({ gpus: [longer], waiting: strict(5999) }).starts).toHaveLength(1);
    const half = gpuOf('g0', { running: [runningTask(profiledTask('r', 1000, 0.5), 0.5)] });
    expect(where(decide({ gpus: [half], waiting: [profiledTask('t', 1000, 0.4)] }))).toEqual([['t', 'g0', 0.5]]);
  });

  test('take in by exchange what is quicker and as small', () => {
    const gpus = [gpuOf('g0', { memoryMiB: 4000 })];
    const waiting = [
      profiledTask('long', 10_000, 0.5, { memoryMiB: 4000 }),
      profiledTask('quick', 100, 0.4, { memoryMiB: 2000, arrivedAt: 1 }),
      profiledTask('quicker', 50, 0.4, { memoryMiB: 2000, arrivedAt: 2 }),
    ];
    expect(
      decide({ at: 3, gpus, waiting })
        .starts.map(({ task }) => task)
        .sort(),
    ).toEqual(['quick', 'quicker']);
  });

  test('a task on several GPUs needs all of them at once', () => {
    const gpus = [gpuOf('g0'), gpuOf('g1', { node: 'other' }), gpuOf('g2')];
    const pair = profiledTask('pair', 100, 0.5, { gpus: 2 });
    expect(decide({ gpus, waiting: [pair] }).starts).toMatchObject([{ task: 'pair', gpu: 'g0', alsoOn: ['g2'] }]);
    expect(decide({ gpus: gpus.slice(0, 2), waiting: [pair] }).order).toEqual(['pair']);
  });

  test('a newcomer is tried alone', () => {
    const waiting = [profiledTask('waits', 100, 0.1), profiledTask('newcomer', 100, 0.1, { arrivedAt: 1 })];
    const found = decide({ at: 1, waiting }, make(), { kind: 'arrival', task: 'newcomer' });
    expect([found.starts.map(({ task }) => task), found.order]).toEqual([['newcomer'], ['waits']]);
  });
});

describe('the end of all work', () => {
  const gpus = [gpuOf('g0', { mode: 'exclusive' }), gpuOf('g1', { mode: 'exclusive' })];

  test('does not wait for a task that is as long as all the rest takes', () => {
    const short = Array.from({ length: 6 }, (_, at) => profiledTask(`short${at}`, 100, 1));
    const waiting = [...short, profiledTask('long', 800, 1)];
    expect(decide({ gpus, waiting }).starts.map(({ task }) => task)).toEqual(['long', 'short0']);
    const half = [...short, profiledTask('half', 300, 1)];
    expect(decide({ gpus, waiting: half }).starts.map(({ task }) => task)).toEqual(['short0', 'short1']);
  });

  test('is far off while tasks go on coming', () => {
    const policy = make();
    const waiting = [profiledTask('long', 800, 1), profiledTask('one', 100, 1), profiledTask('other', 100, 1)];
    for (const at of [0, 100, 200]) {
      const newcomer = profiledTask(`at ${at}`, 400, 1, { arrivedAt: at, allowed: new Set() });
      policy.decide(viewOf({ at, gpus, waiting: [newcomer] }), { kind: 'arrival', task: newcomer.id });
    }
    const startsAt = (at: number): string[] =>
      decide({ at, gpus, waiting: waiting.map((task) => ({ ...task, arrivedAt: 200 })) }, policy).starts.map(
        ({ task }) => task,
      );
    expect(startsAt(200)).toEqual(['one', 'other']);
    expect(startsAt(9000)).toEqual(['long', 'one']);
  });

  test('is not put off by a task beside the one that ends last', () => {
    const startsBeside = (otherMs: number): string[] => {
      const other = profiledTask('other', otherMs, 1, { memoryMiB: 10_000 });
      const gpus = [
        gpuOf('g0', { running: [runningTask(profiledTask('long', 1000, 1), 1)] }),
        gpuOf('g1', { running: [runningTask(other, 1)] }),
      ];
      return decide({ gpus, waiting: [profiledTask('small', 500, 0.3)] }).starts.map(({ gpu }) => gpu);
    };
    expect(startsBeside(700)).toEqual([]);
    expect(startsBeside(1500)).toEqual(['g0']);
  });
});

test('a namespace that holds twice its part leaves the last free GPU to others that have work', () => {
  const held = (index: number): RunningTask => runningTask(profiledTask(`held${index}`, 1000, 1), 1);
  const gpus = [0, 1, 2, 3].map((index) => gpuOf(`g${index}`, index < 3 ? { running: [held(index)] } : {}));
  const more = profiledTask('more', 100, 1);
  const other = profiledTask('other', 100, 1, { namespace: 'b', allowed: new Set() });
  const third = profiledTask('third', 100, 1, { namespace: 'c', allowed: new Set() });
  const startsOf = (waiting: Task[]): string[] => decide({ gpus, waiting }).starts.map(({ task }) => task);
  expect(startsOf([more])).toEqual(['more']);
  expect(startsOf([more, other, third])).toEqual([]);
  expect(startsOf([more, { ...other, allowed: new Set(['g3']) }, third])).toEqual(['other']);
});

describe('shares', () => {
  /** A quota stage that gives each of a set this share, or these shares, and has measured the slowdowns that are given. */
  const answering = (
    source: QuotaChoice['source'],
    given: number | number[],
    measured: (shares: readonly number[]) => number[] | undefined = () => undefined,
  ): Quotas => ({
    shareFor: (set) => ({ shares: set.map((_, at) => (Array.isArray(given) ? given[at]! : given)), source, unmet: [] }),
    slowdownsAt: (_set, _gpu, shares) => measured(shares),
  });
  const proposing = (shares: number[]): Quotas => answering('hit', shares);
  const waiting = [profiledTask('t', 100, 0.6, { sloMs: 1000 })];

  test('are what the function can use, where no task is late for it', () => {
    expect(where(decide({ waiting }))).toEqual([['t', 'g0', 0.7]]);
  });

  test('come from the quota stage where it has measured better ones', () => {
    const pair = [profiledTask('one', 100, 0.6), profiledTask('other', 110, 0.6)];
    const pressing: SlowdownPredictor = {
      slowdown: (_, others) => others.reduce((slowdown, { share }) => slowdown + share ** 2 / 2, 1),
    };
    const find = (source: 'hit' | 'nearest'): number[] => {
      const quotas = answering(source, 0.1);
      const { starts } = decide({ waiting: pair }, make({ quotas, predictorOf: () => pressing }));
      return starts.map(({ share }) => share);
    };
    expect(find('hit')).toEqual([0.1, 0.1]);
    expect(find('nearest')).toEqual([0.7, 0.7]);
  });

  const measuredAt = (planned: number[], others: number[]): ((shares: readonly number[]) => number[] | undefined) => {
    const isPlanned = (shares: readonly number[]): boolean => shares.some((share) => share === 0.7);
    return (shares) => (shares.length < 2 ? undefined : isPlanned(shares) ? planned : others);
  };

  test('of a measured set are judged by its measurements, whatever is predicted', () => {
    const pair = [profiledTask('one', 100, 0.6), profiledTask('other', 110, 0.6)];
    const find = (planned: number[], others: number[]): unknown => {
      const quotas = answering('hit', 0.5, measuredAt(planned, others));
      const { starts, sharings } = decide({ waiting: pair }, make({ quotas }));
      return [starts.map(({ share }) => share), sharings?.map(({ answer, source }) => [answer, source])];
    };
    expect(find([1.8, 1.8], [1.2, 1.2])).toEqual([[0.5, 0.5], [['hit', 'hit']]]);
    expect(find([1.2, 1.2], [1.8, 1.8])).toEqual([[0.7, 0.7], [['hit', 'filling']]]);
    // By 1 % it is not worth while.
    expect(find([1.2, 1.2], [1.19, 1.19])).toEqual([[0.7, 0.7], [['hit', 'filling']]]);
  });

  test('do not come from the quota stage where a task is predicted to be late for it', () => {
    const urgent = waiting.map((task) => ({ ...task, sloMs: 150 }));
    const poor = decide({ waiting: urgent }, make({ quotas: proposing([0.1]) }));
    expect(where(poor)).toEqual([['t', 'g0', 0.7]]);
  });

  test('are no more than the namespace may have, whatever the quota stage knows', () => {
    const bounded = profiledTask('t', 100, 0.6, { sloMs: 1000, maxShare: 0.3 });
    expect(where(decide({ waiting: [bounded] }))).toEqual([['t', 'g0', 0.3]]);
    expect(where(decide({ waiting: [bounded] }, make({ quotas: proposing([0.5]) })))).toEqual([['t', 'g0', 0.3]]);
    expect(where(decide({ waiting: [taskOf('unknown', { maxShare: 0.2 })] }))).toEqual([['unknown', 'g0', 0.2]]);
  });

  test('that the owner has fixed are kept', () => {
    const fixed = [profiledTask('t', 100, 0.6, { share: 0.2 })];
    expect(where(decide({ waiting: fixed }, make({ quotas: proposing([1]) })))).toEqual([['t', 'g0', 0.2]]);
  });
});

describe('bad input', () => {
  const hopeless = profiledTask('t', 100, 0.5, { sloMs: 99 });

  test('a task that can meet its SLO nowhere runs as best effort, or is refused with the reason', () => {
    expect(decide({ waiting: [hopeless] })).toMatchObject({ bestEffort: ['t'], refused: [], starts: [{ task: 't' }] });
    const refusing = decide({ waiting: [hopeless] }, make({ admission: 'refuse' }));
    const refused = [{ task: 't', reason: 'it needs 100 ms, and its SLO leaves 99' }];
    expect(refusing).toMatchObject({ bestEffort: [], refused, starts: [], order: [] });
  });

  test('what has been waited counts, and so does the start', () => {
    const task = profiledTask('t', 100, 0.5, { sloMs: 200, startMs: 50 });
    expect(decide({ at: 50, waiting: [task] }).bestEffort).toEqual([]);
    expect(decide({ at: 51, waiting: [task] }).bestEffort).toEqual(['t']);
  });

  test('a clock that is set back makes no task late or overdue', () => {
    const task = profiledTask('t', 100, 0.5, { sloMs: 200, arrivedAt: 1_000_000 });
    expect(decide({ at: 0, waiting: [task] })).toMatchObject({ bestEffort: [], starts: [{ task: 't' }] });
    const resident = runningTask(profiledTask('r', 100, 0.2), 0.2, 1_000_000);
    const found = decide({
      at: 0,
      gpus: [gpuOf('g0', { running: [resident] })],
      waiting: [profiledTask('t', 10, 0.2)],
    });
    expect(found.starts).toHaveLength(1);
  });

  test('plans what places can take: memory of others counts', () => {
    const policy = makePolicy('faashare', {
      ...{ predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) },
    });
    const ledger = ledgerWith([gpuOf('g0')]);
    const [row] = ledger.ledger.rows();
    const [status] = row!.status;
    ledger.ledger.heard({ ...row!, status: [{ ...status!, processes: [{ pid: 1, memoryMiB: 500 }] }] }, 0);
    const waiting = [taskOf('unknown', { memoryMiB: NaN }), taskOf('small', { arrivedAt: 1 })];
    const decision = policy.decide(viewOf({ at: 1, ledger, waiting }), { kind: 'timer' });
    expect([where(decision), decision.order]).toEqual([[['small', 'g0', 1]], ['unknown']]);
    expect(decision.rejected).toContainEqual({
      ...{ task: 'unknown', what: 'g0', reason: 'too little free memory' },
      numbers: { availableMiB: expect.any(Number), needMiB: 10_000 },
    });
  });

  test('a place that leaves takes work into its idle instances only', () => {
    const ledger = ledgerWith([
      gpuOf('g0', { idle: [{ function: '/a/f', namespace: 'a', share: 1, memoryMiB: 1000 }] }),
    ]);
    const [row] = ledger.ledger.rows();
    const health: DeviceHealth = { state: 'leaving', reasons: [], longestRunMs: 60_000 };
    ledger.ledger.heard({ ...row!, status: row!.status.map((one) => ({ ...one, health })) }, 0);
    const waiting = ['f', 'g'].map((name) => {
      const task = profiledTask(name, 100, 0.3, { function: `/a/${name}` });
      return { ...task, request: { ...requestOfTask(task), timeLimitMs: 1000 } };
    });
    const decision = make().decide(viewOf({ ledger, waiting }), { kind: 'timer' });
    expect([decision.starts.map(({ task, choice }) => [task, choice?.reuses]), decision.order]).toEqual([
      [['f', 'g0 0']],
      ['g'],
    ]);
  });

  test('a task without a profile gets all SMs, and none that is strict beside it', () => {
    expect(where(decide({ waiting: [taskOf('t', { sloMs: 50 })] }))).toEqual([['t', 'g0', 1]]);
    const resident = runningTask(profiledTask('r', 100, 0.9, { sloMs: 130 }), 0.9);
    expect(decide({ gpus: [gpuOf('g0', { running: [resident] })], waiting: [taskOf('t')] }).starts).toEqual([]);
  });

  test('a predictor without a number has tasks take turns', () => {
    const broken = make({ predictorOf: () => ({ slowdown: () => NaN }) });
    const waiting = [0, 1].map((at) => profiledTask(`t${at}`, 100, 0.1, { sloMs: 150, share: 1 }));
    expect(decide({ waiting }, broken).starts).toHaveLength(1);
    const lax = waiting.map((task) => ({ ...task, sloMs: 199 + Number(task.id.slice(1)) }));
    expect(decide({ waiting: lax }, broken).starts).toHaveLength(1);
  });

  test('a newer model takes the place of an older one', () => {
    let slowdown = 1;
    let model = { slowdown: () => slowdown };
    const policy = make({ predictorOf: () => model });
    const waiting = [profiledTask('t', 100, 0.5, { sloMs: 150 })];
    expect(decide({ waiting }, policy).bestEffort).toEqual([]);
    slowdown = 2;
    expect(decide({ waiting }, policy).bestEffort).toEqual([]);
    model = { slowdown: () => slowdown };
    expect(decide({ waiting }, policy).bestEffort).toEqual(['t']);
  });
});

test('where shares may not exceed the GPU, a task joins others with most of what it fills', () => {
  const bounded = makePolicy(
    { base: 'faashare', settings: { maxLoad: 1 } },
    { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) },
  );
  const gpus = [gpuOf('g0', { running: [runningTask(profiledTask('r', 10_000, 0.7), 0.7)] })];
  const startOf = (smUtil: number, policy: Policy, changes: Partial<Task> = {}): unknown[] =>
    where(decide({ gpus, waiting: [profiledTask('t', 1000, smUtil, changes)] }, policy));
  expect(startOf(0.5, bounded)).toEqual([['t', 'g0', 0.3]]);
  // Three tenths are less than six tenths of what it fills, and an owner's share is kept.
  expect(startOf(0.7, bounded)).toEqual([]);
  expect(startOf(0.5, bounded, { share: 0.5 })).toEqual([]);
  expect(startOf(0.5, make())).toEqual([['t', 'g0', 0.5]]);
});
