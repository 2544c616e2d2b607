// The rule of the default policy: functions of which nothing is measured share a GPU by twos.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { dividedSms, gpuOf, profiledTask, runningTask, taskOf } from '../../testing/fixtures.js';
import { walk } from '../../testing/random-world.js';
import { SetTrials } from '../../share/set-trials.js';
import { isUnknown } from '../../stages/place/first-share.js';
import type { Quotas } from '../../share/quotas.js';
import type { Decision } from '../../view/decision.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { SchedulingEvent, Task } from '../../view/view.js';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import type { Policy } from '../../policies/policy.js';
import { gpusOf, viewOf } from '../../testing/views.js';
import type { ViewParts } from '../../testing/views.js';

const make = (quotas?: Quotas, policy: PolicyChoice = 'auto', setTrials = new SetTrials()): Policy =>
  makePolicy(policy, {
    ...{ predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1), setTrials },
    ...(quotas && { quotas }),
  });
/** The same stages without the rule. */
const inTurns: PolicyChoice = { base: 'auto', settings: { firstSlowdown: 0, fullSlowdown: 0 } };

const decide = (snapshot: ViewParts, policy = make(), event: SchedulingEvent = { kind: 'timer' }): Decision =>
  policy.decide(viewOf({ gpus: [gpuOf('g0')], ...snapshot }), event);
const where = ({ starts }: Decision): unknown[] => starts.map(({ task, gpu, share }) => [task, gpu, share]);
const started = (waiting: Task[], gpu: Partial<ReportedPlace> = {}, policy = make(), at = 0): string[] =>
  decide({ at, gpus: [gpuOf('g0', gpu)], waiting }, policy).starts.map(({ task }) => task);

/** A best-effort task of which nothing is known, of a function of its own. */
const plain = (id: string, changes: Partial<Task> = {}): Task => taskOf(id, { function: `/a/${id}`, ...changes });
const running = (...tasks: Task[]): Pick<ReportedPlace, 'running'> => ({
  running: tasks.map((one) => runningTask(one, 1)),
});
const reasonsFor = (id: string, { rejected }: Decision): string[] =>
  rejected.filter(({ task }) => task === id).map(({ reason }) => reason);

describe('functions of which nothing is measured', () => {
  test('start two on a GPU, each with the class of a whole one, while they take turns without the rule', () => {
    const waiting = [plain('f'), plain('g'), plain('h')];
    const decision = decide({ waiting });
    expect(where(decision)).toEqual([
      ['f', 'g0', 1],
      ['g', 'g0', 1],
    ]);
    expect(decision.starts.map(({ reason }) => reason)).toEqual([
      'beside /a/g: nothing measured yet; share: filling',
      'beside /a/f: nothing measured yet; share: filling',
    ]);
    expect(reasonsFor('h', decision)).toEqual(['at most two run together while nothing is measured of one of them']);
    expect(where(decide({ waiting }, make(undefined, inTurns)))).toEqual([['f', 'g0', 1]]);
  });

  test('join one that runs, and no two', () => {
    expect(started([plain('g')], running(plain('f')))).toEqual(['g']);
    expect(started([plain('h')], running(plain('f'), plain('g')))).toEqual([]);
  });

  test('are predicted to take 1.35 times as long together', () => {
    const [f, g] = [plain('f', { soloMs: 1000 }), plain('g', { soloMs: 1000 })];
    expect(decide({ waiting: [f, g] }).starts.map(({ predictedMs }) => predictedMs)).toEqual([1350, 1350]);
    // The rest of a neighbour's run is made with its slowdown; what is left then runs alone.
    const late = decide({ at: 500, gpus: [gpuOf('g0', running(f))], waiting: [plain('h', { soloMs: 1000 })] });
    expect(late.starts[0]?.predictedMs).toBeCloseTo(500 * 1.35 + (1000 - 500));
  });

  test('prefer a free GPU to a shared one', () => {
    const gpus = [gpuOf('g0', running(plain('f'))), gpuOf('g1')];
    expect(where(decide({ gpus, waiting: [plain('g')] }))).toEqual([['g', 'g1', 1]]);
  });

  test('join one that runs on any of several busy GPUs', () => {
    const gpus = ['g0', 'g1', 'g2', 'g3'].map((id) => gpuOf(id, running(plain(`f${id}`))));
    expect(where(decide({ gpus, waiting: [plain('g')] }))).toHaveLength(1);
  });

  test('of another namespace are not named', () => {
    const waiting = [plain('g', { namespace: 'b', function: '/b/g' })];
    // Each has less than its namespace's part of the GPUs.
    const gpus = ['g0', 'g1', 'g2', 'g3'].map((id) => gpuOf(id, running(plain(`f${id}`))));
    const { starts } = decide({ gpus, waiting });
    expect(starts.map(({ reason }) => reason)).toEqual([
      'beside a function of another namespace: nothing measured yet; share: filling',
    ]);
  });

  test('share time slices, too, and take turns on a device that serves one process at a time', () => {
    expect(started([plain('f'), plain('g'), plain('h')], { mode: 'timeslice' })).toEqual(['f', 'g']);
    expect(started([plain('f'), plain('g')], { mode: 'exclusive' })).toEqual(['f']);
  });

  test('share though they are known to fill the GPU', () => {
    const full = ['f', 'g', 'h'].map((id) => profiledTask(id, 1000, 1, { function: `/a/${id}` }));
    expect(started(full)).toEqual(['f', 'g']);
    expect(started(full, {}, make(undefined, 'faashare'))).toEqual(['f']);
  });

  test('share with one of which something is known, which keeps its class', () => {
    const known = profiledTask('k', 1000, 0.25, { function: '/a/k' });
    expect(where(decide({ waiting: [plain('f', { soloMs: 900 }), known] }))).toEqual([
      ['f', 'g0', 1],
      ['k', 'g0', 0.3],
    ]);
    expect(
      started([plain('f')], { running: [runningTask(known, 0.3), runningTask({ ...known, id: 'k2' }, 0.3)] }),
    ).toEqual([]);
  });

  test('with a share of their owner or less than a GPU for their namespace are planned as before', () => {
    for (const changes of [{ share: 0.5 }, { maxShare: 0.5 }]) {
      const waiting = [plain('f', changes), plain('g', changes), plain('h', changes)];
      expect(where(decide({ waiting }))).toEqual(where(decide({ waiting }, make(undefined, inTurns))));
    }
  });

  test('of a namespace over its part of the GPUs are planned as before', () => {
    const gpus = [gpuOf('g0', running(plain('f'))), gpuOf('g1', running(plain('g')))];
    const waiting = [plain('h'), plain('i', { namespace: 'b', memoryMiB: 9500 })];
    const decision = decide({ gpus, waiting });
    expect(where(decision)).toEqual(where(decide({ gpus, waiting }, make(undefined, inTurns))));
    expect(reasonsFor('h', decision)).toContain('its namespace holds its part of all GPUs');
  });

  test('do not join a run that another controller has started, which may have an SLO', () => {
    expect(started([plain('f')], running(plain('r', { version: '' })))).toEqual([]);
  });

  test('that say no, or beside one that does, take turns', () => {
    for (const at of [0, 1]) {
      const waiting = ['f', 'g'].map((id, index) => plain(id, { isolation: index === at ? 'exclusive' : 'namespace' }));
      expect(started(waiting)).toEqual(['f']);
    }
  });

  test('without the memory for two take turns', () => {
    const large = { memoryMiB: 9000 };
    expect(started([plain('f', large), plain('g', large)])).toEqual(['f']);
  });

  test('on a device with no client of MPS left wait', () => {
    const idle = Array.from({ length: 47 }, () => ({ function: '/a/i', namespace: 'a', share: 1, memoryMiB: 10 }));
    const decision = decide({ gpus: [gpuOf('g0', { ...running(plain('f')), idle })], waiting: [plain('g')] });
    expect([where(decision), decision.order]).toEqual([[], ['g']]);
  });
});

describe('what is left as it was', () => {
  const both = (waiting: Task[], gpus: ReportedPlace[]): unknown[] =>
    [make(), make(undefined, inTurns)].map((policy) => where(decide({ waiting, gpus }, policy)));

  test('known functions', () => {
    const small = ['f', 'g', 'h'].map((id) => profiledTask(id, 1000, 0.3));
    const [ours, before] = both(small, [gpuOf('g0')]);
    expect(ours).toEqual(before);
    expect(ours).toHaveLength(3);
  });

  test('batches', () => {
    const [ours, before] = both(
      [plain('f', { batch: 4, share: 1 }), plain('g', { batch: 4, share: 1 })],
      [gpuOf('g0')],
    );
    expect([ours, before]).toEqual([[['f', 'g0', 1]], [['f', 'g0', 1]]]);
  });

  test('functions of several devices', () => {
    const gpus = [gpuOf('g0', running(plain('f'))), gpuOf('g1')];
    const [ours, before] = both([plain('gang', { gpus: 2 })], gpus);
    expect([ours, before]).toEqual([[], []]);
  });
});

describe('beside a task with an SLO', () => {
  const strict = profiledTask('s', 1000, 0.2, { function: '/a/s', sloMs: 60_000 });
  const strictUnknown = plain('s', { sloMs: 60_000 });

  test.each([strict, strictUnknown])('nothing starts of which nothing is measured', (one) => {
    const decision = decide({ gpus: [gpuOf('g0', running(one))], waiting: [plain('f')] });
    expect(where(decision)).toEqual([]);
    expect(reasonsFor('f', decision)).toEqual(['nothing is measured of it, and a task with an SLO is there']);
  });

  test.each([strict, strictUnknown])('it does not start beside what nothing is measured of', (one) => {
    const decision = decide({ gpus: [gpuOf('g0', running(plain('f')))], waiting: [one] });
    expect(where(decision)).toEqual([]);
    expect(reasonsFor('s', decision)).toEqual(['it has an SLO, and nothing is measured of what is there']);
  });

  test.each([strict, strictUnknown])('neither do both in one decision, whichever is first', (one) => {
    expect(started([plain('f'), one])).toEqual(['s']);
    expect(started([one, plain('f')])).toEqual(['s']);
  });

  test.each([strict, strictUnknown])('a waiting one has the next free GPU', (one) => {
    const gpus = [gpuOf('g0', running(plain('f'), plain('g'))), gpuOf('g1', running(plain('h')))];
    const waiting = [{ ...one, arrivedAt: 10 }, plain('i'), plain('j')];
    // The GPU that is predicted to be free first takes no other one; half of the GPUs at most are kept.
    const decision = decide({ at: 20, gpus, waiting });
    expect(where(decision)).toEqual([]);
    expect(reasonsFor('i', decision)).toContain('it is kept for a task with an SLO that waits');
    const arrival = decide({ at: 20, gpus, waiting }, make(), { kind: 'arrival', task: 'j' });
    expect(where(arrival)).toEqual([]);
    const free = [gpuOf('g0', running(plain('g'))), gpuOf('g1')];
    expect(where(decide({ at: 30, gpus: free, waiting }))).toContainEqual(['s', 'g1', expect.any(Number)]);
  });

  test('known best effort is placed as before', () => {
    const known = profiledTask('k', 1000, 0.2);
    expect(started([known], running(strict))).toEqual(['k']);
    expect(started([strict], running(known))).toEqual(['s']);
  });

  test('it is no pair with an unknown one that runs there all the same', () => {
    // As after a launch: the predictions hold, and nothing joins.
    expect(started([plain('h')], running(strict, plain('f')))).toEqual([]);
  });
});

test('an overdue best-effort task of which nothing is measured gets a turn alone', () => {
  const at = 40_000;
  const old = plain('old');
  const strict = ['s0', 's1'].map((id) => profiledTask(id, 100, 0.2, { arrivedAt: at - 10, sloMs: 60_000 }));
  const runs = profiledTask('r', 1000, 0.2, { sloMs: 60_000, arrivedAt: at - 100 });
  const busy = gpuOf('g0', { running: [runningTask(runs, 0.2, at - 100)] });
  // While the other ones wait, no task joins what runs: the GPU is kept until it is free.
  const kept = decide({ at, gpus: [busy], waiting: [old, { ...strict[0]!, soloMs: 5000 }] });
  expect(where(kept)).toEqual([]);
  expect(reasonsFor('s0', kept)).toEqual(['kept for one that waits for longer']);
  expect(where(decide({ at, waiting: [...strict, old] }))).toEqual([['old', 'g0', 1]]);
});

describe('a second instance of a function', () => {
  const call = (id: string, changes: Partial<Task> = {}): Task => taskOf(id, changes);
  const calls = (count: number, changes: Partial<Task> = {}): Task[] =>
    Array.from({ length: count }, (_, at) => call(`c${at}`, { arrivedAt: at, ...changes }));
  const runs = running(call('r'));

  test('starts only where the last call would wait for longer than its start takes', () => {
    const measured = { soloMs: 1000, startMs: 2500 };
    const warm = running(call('r', { soloMs: 1000 }));
    expect(started(calls(2, measured), warm)).toEqual([]);
    expect(started(calls(3, measured), warm)).toEqual(['c0']);
    const decision = decide({ gpus: [gpuOf('g0', warm)], waiting: calls(1, measured) });
    expect(reasonsFor('c0', decision)).toEqual([
      'its function runs there and is free sooner than another instance of it starts',
    ]);
    expect(decision.rejected[0]?.numbers).toEqual({ waitMs: 1000, startMs: 2500 });
  });

  test('is taken to start in 5 s where that was never measured, and sooner on a simulated device', () => {
    expect(started(calls(5), runs)).toEqual([]);
    expect(started(calls(6), runs)).toEqual(['c0']);
    expect(started(calls(1), { ...runs, simulated: true })).toEqual(['c0']);
    expect(started(calls(1, { soloMs: 200 }), { ...running(call('r', { soloMs: 200 })), simulated: true })).toEqual([]);
  });

  test('is for the call that has waited longest, though a later one arrives', () => {
    const waiting = calls(6);
    expect(
      decide({ gpus: [gpuOf('g0', runs)], waiting }, make(), { kind: 'arrival', task: 'c5' }).starts,
    ).toMatchObject([{ task: 'c0' }]);
  });

  test('that idles there takes a call at once', () => {
    const idle = [{ function: '/a/f', namespace: 'a', share: 1, memoryMiB: 1000 }];
    expect(started(calls(1), { ...runs, idle })).toEqual(['c0']);
  });

  test('starts at once on a free GPU, and only one for a call', () => {
    const gpus = [gpuOf('g0', runs), gpuOf('g1')];
    expect(where(decide({ gpus, waiting: calls(3) }))).toEqual([['c0', 'g1', 1]]);
  });
});

describe('measurements of a pair', () => {
  const [f, g] = [plain('f'), plain('g')];
  const timed = [f, g].map((task) => ({ ...task, soloMs: 1000 }));
  /** Trials of runs of 1000 ms alone, and of a set of which each has run `times` times so much longer. */
  const trialsOf = (set: readonly Task[], times: number, slowdown: number, known = new SetTrials()): SetTrials => {
    const gpu = { id: 'g9', gpuType: 't', mode: 'mps' } as const;
    const ran = (task: Task, ranMs: number, others: Task[]): void => {
      const beside = others.map((one) => ({ task: one, share: 1, part: 1 }));
      known.ran({ task, gpu, share: 1, ranMs, endedAt: 0, beside });
    };
    for (const task of set) for (let run = 0; run < 4; run += 1) ran(task, 1000, []);
    for (let run = 0; run < times; run += 1) {
      for (const task of set)
        ran(
          task,
          1000 * slowdown,
          set.filter((one) => one !== task),
        );
    }
    return known;
  };
  const withTrials = (trials: SetTrials): Policy => make(undefined, 'auto', trials);

  test('stand in the place of the rule once each has run twice', () => {
    const predicted = (times: number): unknown[] =>
      decide({ waiting: timed }, withTrials(trialsOf(timed, times, 1.1))).starts.map(({ predictedMs }) => predictedMs);
    expect([predicted(1), predicted(2)]).toEqual([
      [1350, 1350],
      [expect.closeTo(1100), expect.closeTo(1100)],
    ]);
    const { starts } = decide({ waiting: timed }, withTrials(trialsOf(timed, 3, 1.1)));
    expect(starts[0]?.reason).toBe('beside 1 others; share: filling');
  });

  test('that show no gain have the pair take turns, and not the others', () => {
    const h = plain('h', { soloMs: 1000 });
    const trials = (times: number): Policy => withTrials(trialsOf(timed, times, 2.1));
    expect(started(timed, {}, trials(4))).toEqual(['f', 'g']);
    expect(started(timed, {}, trials(5))).toEqual(['f']);
    expect(started([...timed, h], {}, trials(5))).toEqual(['f', 'h']);
    expect(reasonsFor('g', decide({ waiting: timed }, trials(5)))).toEqual([
      'measured: together they do too little more work than in turns',
    ]);
  });

  test('that show a great gain have a third tried beside the two, which stays if it adds to it', () => {
    const trio = ['f', 'g', 'h'].map((id) => plain(id, { soloMs: 1000 }));
    const pair = trio.slice(0, 2);
    const all = [plain('i', { soloMs: 1000 }), ...trio];
    const three = (slowdown: number): Policy => withTrials(trialsOf(trio, 4, slowdown, trialsOf(pair, 3, 1.1)));
    expect(started(trio, {}, withTrials(trialsOf(pair, 3, 1.3)))).toEqual(['f', 'g']);
    expect(started(trio, {}, withTrials(trialsOf(pair, 3, 1.1)))).toEqual(['f', 'g', 'h']);
    expect([started(trio, {}, three(1.3)), started(trio, {}, three(1.7))]).toEqual([
      ['f', 'g', 'h'],
      ['f', 'g'],
    ]);
    expect(started(all, {}, three(1.3))).not.toHaveLength(4);
  });

  test('at other shares do not move the class of one that is not known', () => {
    const quotas: Quotas = {
      shareFor: (set) => ({ shares: set.map(() => 0.5), source: 'hit', slowdowns: set.map(() => 1), unmet: [] }),
      slowdownsAt: (set, _gpu, shares, atLeast = 1) =>
        atLeast === 1 && set.length === 2 ? shares.map((share) => 1 / share) : undefined,
    };
    expect(where(decide({ waiting: timed }, make(quotas)))).toEqual([
      ['f', 'g0', 1],
      ['g', 'g0', 1],
    ]);
  });

  test('are asked for while the rule holds, of the pair and of each alone', () => {
    const asked: string[][] = [];
    const quotas: Quotas = {
      shareFor(set) {
        asked.push(set.map((job) => job.function).sort());
        return { shares: set.map(() => 1), source: 'guardrail', unmet: [] };
      },
      slowdownsAt: () => undefined,
    };
    decide({ waiting: [f, g] }, make(quotas));
    expect(asked.sort()).toEqual([['/a/f'], ['/a/f', '/a/g'], ['/a/g']]);
  });
});

test('on any cluster, none of which nothing is measured is beside an SLO or two others', () => {
  let [pairs, strictStarts] = [0, 0];
  for (let seed = 1; seed <= 30; seed += 1) {
    walk(seededRandom(seed), make(), 40, (view, { starts, bestEffort }) => {
      const { waiting } = view;
      // One that cannot meet its SLO runs as best effort.
      const demoted = new Set(bestEffort);
      const began = starts.map((start) => {
        const { sloMs, ...task } = waiting.find(({ id }) => id === start.task)!;
        return { ...start, task: { ...task, ...(sloMs !== undefined && !demoted.has(task.id) && { sloMs }) } };
      });
      for (const gpu of gpusOf(view)) {
        const here = began.filter((one) => one.gpu === gpu.id || one.alsoOn?.includes(gpu.id));
        const all = [...gpu.running, ...here].map(({ task }) => task);
        const isStrict = ({ sloMs }: Task): boolean => sloMs !== undefined;
        for (const { task } of here) {
          if (isUnknown(task)) expect(all.filter(isStrict)).toEqual([]);
          if (isStrict(task)) expect(all.filter(isUnknown)).toEqual([]);
        }
        const isOpen = all.some((one) => isUnknown(one) && one.share === undefined && one.maxShare === undefined);
        if (here.length > 0 && isOpen && gpu.mode === 'mps') expect(all.length).toBeLessThanOrEqual(2);
        pairs += Number(here.length > 0 && isOpen && all.length === 2);
        strictStarts += Number(here.some(({ task }) => isStrict(task)));
      }
    });
  }
  expect(pairs).toBeGreaterThan(5);
  expect(strictStarts).toBeGreaterThan(20);
});

test('limits of a pair that is not known are not moved by kernel tokens', () => {
  const tasks = [plain('f', { soloMs: 100 }), plain('g', { soloMs: 10_000 })];
  const inInstances = tasks.map((task) => ({ ...runningTask(task, 1), instance: task.id, class: 1 }));
  const decision = decide({ gpus: [gpuOf('g0', { movesShares: true, running: inInstances })] });
  expect(decision.actions ?? []).toEqual([]);
});
