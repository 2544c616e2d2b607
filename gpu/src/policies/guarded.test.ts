import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ledgerOf } from '../place/ledger-of.js';
import type { Decision } from '../view/decision.js';
import type { View } from '../view/view.js';
import { guarded, savedView } from './guarded.js';
import { makePolicy } from './make-policy.js';
import type { Policy } from './policy.js';
import { dividedSms, gpuOf, taskOf } from './testing.js';

const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
const nothing: Decision = { starts: [], refused: [], bestEffort: [], order: [], rejected: [] };
const start = { task: 't', gpu: 'g0', share: 1, reason: '' };

function viewOf(): View {
  const gpus = [gpuOf('g0')];
  return { at: 0, gpus, waiting: [taskOf('t'), taskOf('pair', { gpus: 2 })], ledger: ledgerOf(gpus) };
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
  expect(view.ledger?.ledger.unended()).toHaveLength(1);
});

test('where both fail everybody waits', () => {
  const broken = (): never => {
    throw new Error('broken');
  };
  const found = decidedOn(viewOf(), broken, { name: 'spare', decide: broken });
  expect(found).toEqual([[], ['t', 'pair'], ['Error: broken', 'Error: broken'], []]);
});

test('what is logged of a view is plain and bounded', () => {
  const waiting = Array.from({ length: 500 }, (_, at) => taskOf(`t${at}`, { allowed: new Set(['g0']) }));
  const text = JSON.stringify(savedView({ at: 7, gpus: [gpuOf('g0')], waiting }));
  expect(JSON.parse(text)).toMatchObject({ at: 7, tasks: 500, waiting: { length: 100, 0: { allowed: ['g0'] } } });
});
