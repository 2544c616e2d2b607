// Decisions are taken again from saved views, and are the same.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { predictorsOf, encodeModel, trainModel } from '../predict/slowdown-model.js';
import { inventedSamples, gpuOf, plainDecision, profiledTask, runningTask, taskOf } from '../testing/fixtures.js';
import { QuotaTable } from '../share/quota-table.js';
import { ArrivalCounts } from '../view/function-log.js';
import { toPlain, encodeView } from '../view/saved-view.js';
import { seenPlaces } from '../view/running.js';
import type { SchedulingEvent, View } from '../view/view.js';
import { makePolicy } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { walk } from '../testing/random-world.js';
import { policies } from './registry.js';
import { encodePass, encodeWithin } from './saved-pass.js';
import { decideAgain, decodeView, readPass } from '../testing/saved-pass.js';
import { gpusOf, ledgerWith, viewOf } from '../testing/views.js';

const admission = 'best-effort';
const models = [trainModel({ gpuType: 't', mode: 'mps' }, inventedSamples(60, 1), { version: 1, seed: 1 })];
const predictorOf = predictorsOf(models.map(encodeModel));
const quotas = new QuotaTable({ predictorOf });
const pair = [0, 1].map((at) => ({ function: `/a/f${at}`, version: '1', batch: 1 }));
quotas.record(pair, { gpuType: 't', mode: 'mps' }, { shares: [30, 70], slowdowns: [2, 1.2] }, 550);

const throughText = (value: JsonObject): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue;

describe.each(Object.keys(policies))('policy %s', (policy) => {
  test('decides the same on a saved view, in the state that it had', () => {
    const seed = 1;
    const inForce = makePolicy(policy, { predictorOf, quotas, admission, random: seededRandom(seed) });
    let starts = 0;
    const checked: typeof inForce = {
      ...inForce,
      decide(seen, event) {
        const view = viewOf({ ...seen, ledger: ledgerWith(gpusOf(seen)) });
        const state = inForce.saved?.();
        const saved = throughText(encodePass(view, { policy, admission, event, state, models, quotas: quotas.rows() }));
        const decision = inForce.decide(view, event);
        expect(plainDecision(decideAgain(saved))).toEqual(plainDecision(decision));
        starts += decision.starts.length;
        return decision;
      },
    };
    walk(seededRandom(seed), checked, 25, () => undefined);
    expect(starts).toBeGreaterThan(0);
  });
});

test('instances and arrivals by second and minute are kept for scaling', () => {
  const arrivals = new ArrivalCounts();
  for (const at of [91_000, 99_000, 99_100, 99_200]) arrivals.add(at);
  const policy: PolicyChoice = { base: 'least-loaded', scale: 'reactive' };
  const task = taskOf('f', { soloMs: 4000 });
  const gpus = [gpuOf('g0', { running: [runningTask(taskOf('r', { memoryMiB: NaN }), 0.3)] })];
  const instance = { id: 'c1', function: '/a/old', namespace: 'a', gpus: ['g0'], memoryMiB: 10, tasks: [] };
  const share = { request: 0.1, limit: 0.1, class: 0.1 };
  const view = viewOf({
    ...{ at: 100_000, gpus, functions: [{ task, arrivals }] },
    instances: [{ ...instance, share, state: 'idle', idleSince: 0 }],
  });
  const event: SchedulingEvent = { kind: 'tick' };
  const saved = throughText(encodePass(view, { policy, admission, event, state: undefined, models: [] }));
  const made = makePolicy(policy, { predictorOf: predictorsOf([]), admission, random: seededRandom(1) });
  const decided = made.decide(view, event);
  expect(decided.actions?.map(({ kind }) => kind)).toContain('retire');
  expect(plainDecision(decideAgain(saved))).toEqual(plainDecision(decided));
  const { functions = [] } = readPass(saved).view;
  expect([...functions[0]!.arrivals.bySecond(100_000)]).toEqual([...arrivals.bySecond(100_000)]);
  expect([...functions[0]!.arrivals.byMinute(100_000)]).toEqual([...arrivals.byMinute(100_000)]);
});

/** A view with something of every part. */
function fullView(): View {
  const gpus = [
    gpuOf('g0', { running: [runningTask(profiledTask('r', 100, 0.4), 0.5)] }),
    gpuOf('g1', { idle: [{ function: '/a/f', namespace: 'a', share: 0.3, memoryMiB: 1000 }] }),
  ];
  const waiting = [
    profiledTask('strict', 50, 0.3, { sloMs: 200, arrivedAt: 900 }),
    profiledTask('limited', 80, 0.6, { allowed: new Set(['g0']), arrivedAt: 950 }),
    taskOf('unknown', { memoryMiB: NaN, namespace: 'b', arrivedAt: 990 }),
  ];
  const arrivals = new ArrivalCounts();
  arrivals.add(900);
  return viewOf({
    ...{ at: 1000, gpus, waiting, functions: [{ task: waiting[0]!, arrivals }] },
    nodes: [{ id: 'n', labels: { zone: 'z' }, market: 'spot', pricePerHour: 1 }],
    devices: [{ id: 'g0', node: 'n', type: 't', mode: 'mps', geometries: [], places: [{ id: 'g0' }] }],
    workloads: [
      {
        ...{ id: 'w', node: 'n', device: 'g0', tolerated: 0.1, baseline: 10, baselineFrom: 'declared' },
        ...{ rate: 8, reportedAt: 900, measured: 0.2, state: 'beyond-bound' },
      },
      { id: 'x', node: 'n', device: 'g0', tolerated: 0.1, estimated: 0.5 },
    ],
  });
}

test('a file of this version of the format is read, and gives the decision that it gave', () => {
  const file = new URL('../../src/policies/saved-pass.json', import.meta.url);
  if (process.env['GOLDEN_UPDATE'] === '1') {
    const made = makePolicy('faashare', { predictorOf, quotas, admission, random: seededRandom(1) });
    made.decide({ ...fullView(), at: 990 }, { kind: 'timer' });
    const event: SchedulingEvent = { kind: 'timer' };
    const inputs = { policy: 'faashare', event, state: made.saved?.(), models: [], quotas: quotas.rows() };
    const saved = encodePass(fullView(), { ...inputs, admission });
    const content = { saved, decision: plainDecision(decideAgain(saved)) };
    writeFileSync(file, `${JSON.stringify(content, undefined, 2)}\n`);
  }
  const { saved, decision } = JSON.parse(readFileSync(file, 'utf8')) as { saved: JsonObject; decision: JsonValue };
  expect(plainDecision(decideAgain(saved))).toEqual(decision);
  const { view } = readPass(saved);
  expect(view.waiting).toEqual(fullView().waiting);
  expect(toPlain(seenPlaces(view))).toEqual(toPlain(seenPlaces(fullView())));
  const { nodes, devices, workloads } = fullView();
  expect([view.nodes, view.devices, view.workloads]).toEqual([nodes, devices, workloads]);
});

test('a first fit tries the places of a saved ledger in the same order', () => {
  const gpus = Array.from({ length: 1100 }, (_, at) => gpuOf(`g${at}`, { node: `n${at % 7}` }));
  const ledger = ledgerWith(gpus);
  const placed = (id: string, view: View): string[] =>
    makePolicy('least-loaded', { predictorOf, admission, random: seededRandom(1) })
      .decide({ ...view, waiting: [taskOf(id, { share: 0.2 })] }, { kind: 'timer' })
      .starts.map(({ gpu }) => gpu);
  const view = viewOf({ ledger });
  for (const id of ['a', 'b', 'c']) placed(id, view);
  ledger.ledger.release('b');
  const copy = decodeView(throughText(encodeView(view)));
  expect(copy.ledger.ledger.byLoadIds()).toEqual(ledger.ledger.byLoadIds());
  expect(placed('d', copy)).toEqual(placed('d', view));
  const sums = (of: View): unknown[] =>
    of.ledger.ledger
      .accounts()
      .map(({ id, load, freeMiB, availableMiB, busy, order }) => [...[id, load, freeMiB, availableMiB, busy, order]]);
  expect(sums(copy)).toEqual(sums(view));
});

test('parts beyond the bounds are left out, and counted', () => {
  const gpus = Array.from({ length: 5 }, (_, at) => gpuOf(`g${at}`, { node: `n${at}` }));
  const waiting = [taskOf('t', { allowed: new Set(['g0']) })];
  const saved = encodeView(viewOf({ at: 7, gpus, waiting }), { mostEach: 2 });
  expect(saved['leftOut']).toEqual({ rows: 3, byLoad: 3 });
  const view = decodeView(throughText(saved));
  expect([seenPlaces(view).length, view.waiting[0]?.allowed]).toEqual([2, new Set(['g0'])]);
});

test('a view is saved within a bound of its text', () => {
  const waiting = Array.from({ length: 500 }, (_, at) => taskOf(`t${at}`, { allowed: new Set(['g0', 'g1']) }));
  const gpus = [gpuOf('g0')];
  const view = viewOf({ at: 7, gpus, waiting });
  const inputs = { policy: 'faashare', admission, event: { kind: 'timer' }, state: undefined, models } as const;
  const saved = (maxBytes: number): JsonObject => encodeWithin(maxBytes, view, inputs);
  expect(saved(64_000)).toMatchObject({ at: 7, leftOut: { waiting: 400, models: 1, state: 1 } });
  expect(readPass(saved(64_000)).view.waiting).toHaveLength(100);
  expect(saved(5000)).toMatchObject({ at: 7, leftOut: { waiting: 490 } });
  expect(JSON.stringify(saved(200)).length).toBeLessThanOrEqual(200);
});

test.each<[string, JsonValue]>([
  ["its format is not 'gpuwhisk view'", []],
  ["its format is not 'gpuwhisk view'", { at: 1 }],
  ['its format has version 1 instead of 2', { format: 'gpuwhisk view', version: 1 }],
  ['its format has version 3 instead of 2', { format: 'gpuwhisk view', version: 3 }],
  [
    'ledger: Invalid input: expected object, received undefined',
    { format: 'gpuwhisk view', version: 2, at: 1, waiting: [] },
  ],
])('JSON that is no view is refused: %s', (reason, saved) => {
  expect(() => decodeView(saved)).toThrow(`This is no usable view: ${reason}.`);
});

test.each<[string, (string | number)[], JsonValue]>([
  ['at: Invalid input: expected number, received NaN', ['at'], { $number: 'NaN' }],
  [
    'waiting.0.arrivedAt: Invalid input: expected number, received NaN',
    ['waiting', 0, 'arrivedAt'],
    { $number: 'NaN' },
  ],
  ['waiting.1.function: Invalid input: expected string, received null', ['waiting', 1, 'function'], null],
  [
    'ledger.rows.0.devices.0.memoryMiB: Invalid input: expected number, received NaN',
    ['ledger', 'rows', 0, 'devices', 0, 'memoryMiB'],
    { $number: 'NaN' },
  ],
  ['functions.0.bySecond.0: Too small: expected array to have >=2 items', ['functions', 0, 'bySecond', 0], [1]],
  ['admission: Invalid option: expected one of "best-effort"|"refuse"', ['admission'], 'always'],
  ['event.kind: Invalid option', ['event', 'kind'], 'never'],
  ['models: Invalid input: expected array, received null', ['models'], null],
])('a saved view is refused by the name of its field: %s', (reason, path, value) => {
  const event: SchedulingEvent = { kind: 'timer' };
  const saved = throughText(
    encodePass(fullView(), { policy: 'exclusive', admission, event, state: undefined, models: [] }),
  );
  const [last = '', ...above] = [...path].reverse();
  const place = above.reverse().reduce<JsonValue>((one, name) => (one as JsonObject)[name]!, saved) as JsonObject;
  expect(() => readPass(saved)).not.toThrow();
  place[last] = value;
  expect(() => readPass(saved)).toThrow(`This is no usable view: ${reason}`);
});
