import { describe, expect, test } from '@jest/globals';
import type { Placement } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { boundStarts } from '../stages/place/bind.js';
import { shareAt } from '../view/requests.js';
import type { Action, Decision } from '../view/decision.js';
import type { Reservation } from '../ledger/occupancy.js';
import type { Task, View } from '../view/view.js';
import { guarded, mostCallsOn } from './guarded.js';
import { makePolicy } from './make-policy.js';
import type { Policy } from './policy.js';
import { policies } from './registry.js';
import { dividedSms, gpuOf, profiledTask, taskOf } from '../testing/fixtures.js';
import { viewOf as viewWith } from '../testing/views.js';

const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
const nothing: Decision = { starts: [], refused: [], bestEffort: [], order: [], rejected: [] };
const start = { task: 't', gpu: 'g0', share: 1, reason: '' };

function viewOf(): View {
  const gpus = [gpuOf('g0')];
  return viewWith({ gpus, waiting: [taskOf('t'), taskOf('pair', { gpus: 2 })] });
}

function decidedOn(view: View, decide: Policy['decide'], spare = makePolicy('least-loaded', needs)): unknown[] {
  const faults: string[] = [];
  const returned: string[] = [];
  const policy: Policy = { name: 'broken', decide, returned: (task) => returned.push(task) };
  const { starts, order } = guarded(policy, spare, (fault) => faults.push(fault.split('\n')[0]!)).decide(view, {
    kind: 'timer',
  });
  return [starts.map(({ task, gpu }) => [task, gpu]), order, faults, returned];
}

const saved = [[['t', 'g0']], ['pair']];

const faults: [string, Partial<Decision>, string[]][] = [
  ["task 'gone' does not wait", { starts: [{ ...start, task: 'gone' }] }, ['gone']],
  ["task 't' is decided about twice", { starts: [start, start] }, ['t', 't']],
  ["task 't' is decided about twice", { starts: [start], refused: [{ task: 't', reason: '' }] }, ['t']],
  ["task 'gone' does not wait", { order: ['gone'] }, []],
  ["task 't' is started on 'g9', which is not there", { starts: [{ ...start, gpu: 'g9' }] }, ['t']],
  ["task 'pair' is started on 1 places, and needs 2", { starts: [{ ...start, task: 'pair' }] }, ['pair']],
  ["task 't' is started with a share of NaN", { starts: [{ ...start, share: NaN }] }, ['t']],
];

test.each(faults)('a policy that decides what cannot be is not heeded: %s', (fault, decision, returned) => {
  expect(decidedOn(viewOf(), () => ({ ...nothing, ...decision }))).toEqual([...saved, [fault], returned]);
});

test('a policy that throws holds nothing any more, and another one decides', () => {
  const view = viewOf();
  const leastLoaded = makePolicy('least-loaded', needs);
  const throwing: Policy['decide'] = (seen, event) => {
    expect(leastLoaded.decide(seen, event).starts).toHaveLength(1);
    throw new TypeError('it broke');
  };
  expect(decidedOn(view, throwing)).toEqual([...saved, ['TypeError: it broke'], []]);
  expect(view.ledger.ledger.unended()).toHaveLength(1);
});

test('where both fail everybody waits', () => {
  const broken = (): never => {
    throw new Error('broken');
  };
  const found = decidedOn(viewOf(), broken, { name: 'spare', decide: broken });
  expect(found).toEqual([[], ['t', 'pair'], ['Error: broken', 'Error: broken'], []]);
});

describe('a policy that misuses the ledger', () => {
  const faultOn = (view: View, decide: Policy['decide']): string[] => {
    const faults: string[] = [];
    guarded({ name: 'broken', decide }, makePolicy('least-loaded', needs), (fault) =>
      faults.push(fault.split('\n')[0]!),
    ).decide(view, { kind: 'timer' });
    return faults;
  };
  const held = (activationId: string, memoryMiB: number, placed: Partial<Placement> = {}): Reservation => ({
    ...{ activationId, action: '/a/f', namespace: 'a', isolation: 'shared', ended: false },
    placement: {
      ...{ invoker: 'n', devices: ['g0'], share: shareAt(1, memoryMiB), at: 0, epoch: 0, version: 0 },
      ...placed,
    },
  });

  test.each<[string, string, (view: View) => Decision]>([
    [
      'calls it without end',
      'LedgerMisuseError: a policy called the ledger more than 1110 times',
      ({ ledger }) => {
        for (;;) ledger.ledger.account('g0');
      },
    ],
    [
      'releases what runs',
      "LedgerMisuseError: a policy changed the reservation of 'runs', which does not wait",
      ({ ledger }) => {
        ledger.ledger.release('runs');
        return nothing;
      },
    ],
    [
      'ends what runs',
      'LedgerMisuseError: the ledger ends no runs for a policy',
      ({ ledger }) => {
        ledger.ledger.end('runs');
        return nothing;
      },
    ],
    [
      'takes a node away',
      'LedgerMisuseError: the ledger forgets no nodes for a policy',
      ({ ledger }) => {
        ledger.ledger.silent('n');
        return nothing;
      },
    ],
    [
      'holds a task that it does not start',
      "'t' is held in the ledger and is not started",
      ({ ledger }) => {
        ledger.ledger.hold(held('t', 1000), Infinity);
        return nothing;
      },
    ],
    [
      'holds more than a place has',
      "task 't' is started on 'g0', which lacks 900 MiB for it",
      ({ ledger }) => {
        const { placement } = held('t', 10_000);
        ledger.ledger.hold({ ...held('t', 10_000), placement }, Infinity);
        return { ...nothing, starts: [{ ...start, choice: { placement, rejected: [] } }] };
      },
    ],
    [
      'starts what it does not hold',
      "task 't' is started by a placement that it does not hold there",
      () => ({ ...nothing, starts: [{ ...start, choice: { placement: held('t', 1).placement, rejected: [] } }] }),
    ],
  ])('%s', (_, fault, decide) => {
    const view = { ...viewOf(), waiting: [taskOf('t')] };
    const { ledger } = view.ledger;
    ledger.hold(held('runs', 900), Infinity);
    expect(faultOn(view, () => decide(view))).toEqual([fault]);
    // What ran is there, and the task was started by the other policy.
    expect(ledger.unended().map(({ activationId }) => activationId)).toEqual(['runs', 't']);
    expect(ledger.account('g0')?.availableMiB).toBe(10_000 - 900 - 1000);
  });

  test('every policy of the registry keeps within the calls of a pass', () => {
    const gpus = Array.from({ length: 20 }, (_, at) => gpuOf(`g${at}`, { node: `n${at % 4}` }));
    const allowed = new Set(gpus.slice(3).map(({ id }) => id));
    const waiting = Array.from({ length: 60 }, (_, at) =>
      profiledTask(`t${at}`, 100, 0.3, {
        ...{ gpus: 1 + (at % 3), memoryMiB: 3000 },
        ...(at % 2 === 0 && { allowed, sloMs: 1000 }),
      }),
    );
    for (const name of Object.keys(policies)) {
      const view = viewWith({ gpus, waiting });
      expect(faultOn(view, (seen, event) => makePolicy(name, needs).decide(seen, event))).toEqual([]);
      expect(mostCallsOn(view)).toBeLessThan(20_000);
    }
  });
});

const gone = { kind: 'retire', instance: 'gone', reason: 'r' };

test.each<[string, unknown, boolean]>([
  ['on an instance that is gone', gone, true],
  ['of an unknown kind', { kind: 'explode', reason: 'r' }, false],
  ['that is none', null, false],
  ['without a reason', { kind: 'retire', instance: 'c' }, false],
  ['with a senseless grace', { ...gone, graceMs: NaN }, false],
  ['on no GPUs', { kind: 'launch', function: '/a/f', namespace: 'a', gpus: [], share: 1, reason: 'r' }, false],
  ['with a request above its limit', { kind: 'reshare', instance: 'c', request: 1, limit: 0.5, reason: 'r' }, false],
  ['with profiles that are no names', { kind: 'cut', device: 'g0', profiles: [7], reason: 'r' }, false],
  ['of an unknown market', { kind: 'acquire', market: 'grey', reason: 'r' }, false],
  ['on no node', { kind: 'give-back', reason: 'r' }, false],
])('an action %s', (_, action, isPassedOn) => {
  const faults: string[] = [];
  const broken: Policy = { name: 'broken', decide: () => ({ ...nothing, actions: [action as Action] }) };
  const policy = guarded(broken, makePolicy('least-loaded', needs), (fault) => faults.push(fault.split(':')[0]!));
  const { actions, starts } = policy.decide(viewOf(), { kind: 'timer' });
  if (isPassedOn) expect([actions, starts, faults]).toEqual([[action], [], []]);
  else expect([actions, starts.length, faults]).toEqual([undefined, 1, ['an action is malformed']]);
});

test.each<[string, unknown]>([
  ['is none', undefined],
  ['is a number', 5],
  ['lacks its lists', {}],
  ['has starts that are none', { ...nothing, starts: [null] }],
  ['has reasons that are none', { ...nothing, starts: [{ ...start, reason: undefined }] }],
])('a decision that %s is not carried out', (_, decision) => {
  const [starts, order, faults] = decidedOn(viewOf(), () => decision as Decision);
  expect([starts, order, (faults as string[]).length]).toEqual([...saved, 1]);
});

test.each<[string, Partial<Task>[], string]>([
  ['memory', [{ memoryMiB: 6000 }, { memoryMiB: 6000 }], 'too little free memory (availableMiB 4000, needMiB 6000)'],
  ['isolation', [{}, { isolation: 'namespace', namespace: 'b' }], 'isolation: it is shared with others (others 1)'],
  ['what it may give at all', [{ memoryMiB: 11_000 }], 'too small (capacityMiB 10000, needMiB 11000)'],
])('a place is not filled beyond its %s', (_, tasks, fault) => {
  const gpus = [gpuOf('g0')];
  const waiting = tasks.map((task, at) => taskOf(`t${at}`, task));
  const starts = waiting.map(({ id }) => ({ ...start, task: id }));
  const view = viewWith({ gpus, waiting });
  const [, , faults] = decidedOn(view, (seen) => ({ ...nothing, starts: boundStarts(seen, starts, []) }));
  const last = waiting.at(-1)!.id;
  expect(faults).toEqual([`task '${last}' is started on 'g0', which cannot take it: ${fault}`]);
});

test('a task of unknown need is not started beside memory of others, which it could never get', () => {
  const view = viewWith({ gpus: [gpuOf('g0', { workloads: [500] })], waiting: [taskOf('t', { memoryMiB: 0 })] });
  const [, , faults] = decidedOn(view, (seen) => ({ ...nothing, starts: boundStarts(seen, [start], []) }));
  const fault = 'too little free memory (availableMiB 9500, needMiB 10000)';
  expect(faults).toEqual([`task 't' is started on 'g0', which cannot take it: ${fault}`]);
});

test('a policy that fails outside of a decision stops nothing', () => {
  const faults: string[] = [];
  const fail = (): never => {
    throw new Error('broken');
  };
  const policy = guarded(
    { name: 'broken', decide: fail, observe: fail, returned: fail, saved: fail, geometry: fail },
    makePolicy('least-loaded', needs),
    (fault) => faults.push(fault.split('\n')[0]!),
  );
  policy.returned?.('t');
  policy.observe?.({ task: taskOf('t'), gpu: { id: 'g0', gpuType: 't', mode: 'mps' }, share: 1, ranMs: 1, beside: [] });
  expect([policy.saved?.(), policy.geometry?.()]).toEqual([undefined, undefined]);
  expect(faults).toEqual(Array.from({ length: 4 }, () => 'Error: broken'));
});
