// PROTEAN's stages: batches, tags and the slices that strict work and best effort get.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { requestOfTask } from '../../view/requests.js';
import { SliceSlowdowns } from './slowdowns.js';
import { dividedSms, fillingInTurn, gpuOf, profiledTask, runningTask, taskOf } from '../../testing/fixtures.js';
import type { Decision } from '../../view/decision.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { Task } from '../../view/view.js';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import type { Policy } from '../../policies/policy.js';
import { viewOf } from '../../testing/views.js';
import type { ViewParts } from '../../testing/views.js';

const sliceMiB = { '1g.5gb': 4600, '2g.10gb': 9300, '3g.20gb': 18_900, '4g.20gb': 18_900 } as const;

function slice(id: string, profile: keyof typeof sliceMiB, changes: Partial<ReportedPlace> = {}): ReportedPlace {
  return gpuOf(id, { type: `a100-40:${profile}`, mode: 'mig', memoryMiB: sliceMiB[profile], ...changes });
}

/** A task of a function of its own. */
const task = (id: string, changes: Partial<Task> = {}): Task =>
  taskOf(id, { function: `/a/${id}`, memoryMiB: 2000, soloMs: 100, ...changes });
const strict = (id: string, changes: Partial<Task> = {}): Task => task(id, { sloMs: 1000, ...changes });

function decide(view: ViewParts, slowdowns = new SliceSlowdowns(), choice: PolicyChoice = 'protean'): Decision {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const policy = makePolicy(choice, { ...needs, sliceSlowdowns: slowdowns });
  return policy.decide(viewOf(view), { kind: 'timer' });
}
const placed = ({ starts }: Decision): string[] => starts.map(({ task: id, gpu }) => `${id} ${gpu}`);

/** Slowdowns in which each function runs for 100 ms alone on any slice, and needs so much of the bandwidth. */
function learned(needs: Readonly<Record<string, number>>): SliceSlowdowns {
  const slowdowns = new SliceSlowdowns();
  const [names, random] = [Object.keys(needs), seededRandom(2)];
  const own = (id: string): { function: string; version: string; arrivedAt: number } => {
    return { function: `/a/${id}`, version: '1', arrivedAt: 0 };
  };
  for (const id of names) {
    for (const profile of Object.keys(sliceMiB)) {
      const gpu = { gpuType: `a100-40:${profile}`, mode: 'mig' } as const;
      slowdowns.ran({ task: own(id), gpu, ranMs: 100, beside: [] });
    }
  }
  const gpu = { gpuType: 'a100-40:4g.20gb', mode: 'mig' } as const;
  for (let run = 0; run < 300; run += 1) {
    const [one, other] = [names[random.uint32() % names.length]!, names[random.uint32() % names.length]!];
    const ranMs = 100 * Math.max(1, needs[one]! + needs[other]!);
    slowdowns.ran({ task: own(one), gpu, ranMs, beside: [{ task: own(other), part: 1 }] });
  }
  return slowdowns;
}

const cut = [slice('big', '4g.20gb'), slice('middle', '2g.10gb'), slice('little', '1g.5gb')];

describe('placement', () => {
  test('puts strict work on the largest slice and best effort on the smallest that it fits, strict work first', () => {
    const waiting = [task('b1'), strict('s'), task('b2'), task('b3', { memoryMiB: 6000 })];
    expect(placed(decide({ gpus: cut, waiting }))).toEqual(['s big', 'b1 little', 'b2 little', 'b3 middle']);
  });

  test('gives strict work a smaller slice where neighbours cost more than the missing SMs', () => {
    const slowdowns = learned({ s: 0.6, r: 0.9 });
    const running = [runningTask(task('r'), 1)];
    const [, ...others] = cut;
    const gpus = [slice('big', '4g.20gb', { running }), ...others];
    expect(placed(decide({ gpus, waiting: [strict('s')] }, slowdowns))).toEqual(['s middle']);
    const { rejected } = decide({ gpus: gpus.slice(0, 2), waiting: [strict('s')] }, slowdowns);
    expect(rejected).toEqual([]);
    const [start] = decide({ gpus, waiting: [strict('s')] }, slowdowns).starts;
    const reasons = start?.choice?.rejected.map(({ what, reason, numbers }) => [
      what,
      reason,
      numbers.slowdown?.toFixed(1),
    ]);
    expect(reasons).toEqual([
      ['little', 'no sooner there than on the chosen one', '1.0'],
      ['big', 'it would be slower there than on the chosen one', '1.5'],
    ]);
  });

  test('counts the best effort that waits: strict work avoids the slices that it will fill', () => {
    const slowdowns = learned({ s: 0.6, b: 0.9 });
    const gpus = [slice('one', '3g.20gb'), slice('other', '3g.20gb')];
    const counting: PolicyChoice = { base: 'protean', settings: { countWaiting: 1 } };
    const many = Array.from({ length: 9 }, (_, at) => task(`b${at}`, { function: '/a/b' }));
    // 18,000 of 18,900 MiB of the first: its tag is below 1, and its slowdown is that beside eight.
    expect(placed(decide({ gpus, waiting: [...many, strict('s')] }, slowdowns, counting))[0]).toBe('s other');
    const more = Array.from({ length: 30 }, (_, at) => task(`b${at}`, { function: '/a/b' }));
    // All tags are 1.
    const [first] = decide({ gpus, waiting: [...more, strict('s')] }, slowdowns, counting).starts;
    expect(first?.task).toBe('s');
  });

  test('holds best effort back where strict runs would take too much of their SLO', () => {
    const slowdowns = learned({ s: 0.6, b: 0.9 });
    const gpus = [slice('big', '4g.20gb')];
    const waiting = (sloMs: number): Task[] => [strict('s', { sloMs }), task('b')];
    // 0.6 + 0.9 of the bandwidth: the strict run takes 150 ms.
    expect(placed(decide({ gpus, waiting: waiting(200) }, slowdowns))).toEqual(['s big', 'b big']);
    const late = decide({ gpus, waiting: waiting(180) }, slowdowns);
    expect(placed(late)).toEqual(['s big']);
    const [refused] = late.rejected.filter(({ task: id }) => id === 'b');
    expect(refused?.reason).toBe('strict runs there would take too much of their SLO');
    const anywhere: PolicyChoice = { base: 'protean', settings: { strictPart: 0 } };
    expect(placed(decide({ gpus, waiting: waiting(180) }, slowdowns, anywhere))).toEqual(['s big', 'b big']);
  });

  test('knows the SLOs of what runs again from its saved state', () => {
    const slowdowns = learned({ s: 0.6, b: 0.9 });
    const make = (): Policy => {
      const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
      return makePolicy('protean', { ...needs, sliceSlowdowns: slowdowns });
    };
    const timer = { kind: 'timer' } as const;
    const first = make();
    const alone = viewOf({ gpus: [slice('big', '4g.20gb')], waiting: [strict('s', { sloMs: 180 })] });
    expect(placed(first.decide(alone, timer))).toEqual(['s big']);
    const running = [runningTask(task('s', { function: '/a/s' }), 1)];
    const beside = viewOf({ gpus: [slice('big', '4g.20gb', { running })], waiting: [task('b')] });
    const next = make();
    next.restore?.(JSON.parse(JSON.stringify(first.saved?.())));
    expect(placed(next.decide(beside, timer))).toEqual([]);
    expect(placed(make().decide(beside, timer))).toEqual(['b big']);
  });

  test('keeps best effort off the last slice below tag 1 while strict work waits', () => {
    const full = [runningTask(task('r', { memoryMiB: 17_000 }), 1)];
    const gpus = [slice('little', '1g.5gb'), slice('big', '4g.20gb', { running: full })];
    const large = strict('s', { memoryMiB: 9000 });
    const best = ['b1', 'b2', 'b3'].map((id) => task(id, { memoryMiB: 1800 }));
    const waits = decide({ gpus, waiting: [large, ...best] });
    expect(placed(waits)).toEqual(['b1 little', 'b2 little']);
    expect(waits.rejected.filter((one) => one.task === 'b3')).toContainEqual({
      ...{ task: 'b3', what: 'big', reason: 'kept for strict work that waits', numbers: { strict: 1 } },
    });
    expect(placed(decide({ gpus, waiting: best }))).toEqual(['b1 little', 'b2 little', 'b3 big']);
  });

  test('takes an idle instance before a start that costs more than the slice gains', () => {
    const idle = [{ function: '/a/s', namespace: 'a', share: 1, memoryMiB: 2000 }];
    const gpus = [slice('big', '4g.20gb'), slice('middle', '2g.10gb', { idle })];
    expect(placed(decide({ gpus, waiting: [strict('s', { startMs: 3000 })] }))).toEqual(['s middle']);
    expect(placed(decide({ gpus, waiting: [strict('s', { startMs: 10 })] }))).toEqual(['s big']);
  });

  test('judges strict work by itself where best effort of its function found no place', () => {
    const waiting = [task('b', { function: '/a/f' }), strict('s', { function: '/a/f' })];
    const place: PolicyChoice = { ...fillingInTurn, place: 'protean' };
    const gpus = [slice('big', '4g.20gb')];
    expect(placed(decide({ gpus, waiting }, new SliceSlowdowns(), place))).toEqual(['s big']);
  });

  test('stands alone beside other stages', () => {
    const waiting = [task('b'), strict('s')];
    const place: PolicyChoice = { ...fillingInTurn, place: 'protean' };
    expect(placed(decide({ gpus: cut, waiting }, new SliceSlowdowns(), place))).toEqual(['b little', 's big']);
  });
});

describe('batches', () => {
  const gpus = [gpuOf('g0', { idle: [{ function: '/a/f', namespace: 'a', share: 1, memoryMiB: 1000 }] })];
  const request = (id: string, changes: Partial<Task> = {}): Task => {
    const one = taskOf(id, { batch: 3, soloMs: 100, startMs: 500, ...changes });
    return { ...one, request: { ...requestOfTask(one), batch: 3 } };
  };
  const decided = (waiting: Task[], at = 0, choice: PolicyChoice = 'protean'): Decision =>
    decide({ at, gpus, waiting }, new SliceSlowdowns(), choice);

  test('wait until they are full or for their last moment, the start of an idle instance left out', () => {
    const waiting = [request('one', { sloMs: 1000 }), request('two', { sloMs: 1000, arrivedAt: 100 })];
    const early = decided(waiting, 100);
    expect([placed(early), early.order, early.wakeAt]).toEqual([[], ['one', 'two'], 880]);
    expect(early.rejected[0]).toMatchObject({
      reason: 'its batch is being filled',
      numbers: { requests: 2, leftMs: 780 },
    });
    expect(placed(decided(waiting, 880))).toEqual(['one g0', 'two g0']);
    expect(placed(decided([...waiting, request('three')], 100))).toEqual(['one g0', 'two g0', 'three g0']);
    // A function whose time is not known does not wait.
    const { soloMs, ...unknown } = request('one', { sloMs: 1000 });
    expect([soloMs, placed(decided([unknown]))]).toEqual([100, ['one g0']]);
    expect(decided([request('one')]).wakeAt).toBe(50);
  });

  test('have strict requests first, which make their batch strict, and run in one instance', () => {
    const waiting = [
      ...['b1', 'b2', 'b3'].map((id) => request(id)),
      request('late', { sloMs: 900, arrivedAt: 20 }),
      request('soon', { sloMs: 500, arrivedAt: 20 }),
    ];
    const { starts, order } = decided(waiting, 20);
    expect([starts.map(({ task: id }) => id), order]).toEqual([
      ['soon', 'late', 'b1'],
      ['b2', 'b3'],
    ]);
    const together = { of: 'soon', requests: 3 };
    expect(starts.map(({ choice }) => choice?.placement)).toMatchObject([
      { together },
      { together, joins: true },
      { together, joins: true },
    ]);
    expect(starts.map(({ choice }) => choice?.reuses)).toEqual(['g0 0', 'g0 0', 'g0 0']);
  });

  test('are not mixed of callers or versions', () => {
    const other = request('other');
    const waiting = [
      request('one'),
      { ...other, version: '2' },
      { ...request('bob'), request: { ...requestOfTask(other), batch: 3, subject: 'bob' } },
    ];
    expect(decided(waiting).starts).toEqual([]);
  });

  test('that are not full join an instance that is busy, and full ones start one of their own', () => {
    const waiting = Array.from({ length: 4 }, (_, at) => request(`t${at}`, { sloMs: 400 }));
    const { starts } = decided([...waiting, ...['u0', 'u1'].map((id) => request(id, { sloMs: 400 }))]);
    expect(starts.map(({ choice }) => choice?.reuses)).toEqual(['g0 0', 'g0 0', 'g0 0', undefined, 't3', 't3']);
    // Without an idle instance a start takes longer than the deadline leaves.
    const busy = [gpuOf('g0', { running: [runningTask(profiledTask('r', 100, 0.5), 1)] })];
    const five = decide({ gpus: busy, waiting: [...waiting, request('t4', { sloMs: 400 })] });
    expect(five.starts.map(({ choice }) => choice?.reuses)).toEqual([undefined, 't0', 't0', 'r', 'r']);
  });

  test('are gathered beside other places, too', () => {
    const choice: PolicyChoice = { ...fillingInTurn, order: 'protean' };
    const waiting = ['one', 'two'].map((id) => request(id, { sloMs: 1000, share: 0.3 }));
    expect(decided(waiting, 0, choice)).toMatchObject({ starts: [], order: ['one', 'two'], wakeAt: 880 });
    expect(decided(waiting, 880, choice).starts.map(({ task: id }) => id)).toEqual(['one', 'two']);
  });
});
