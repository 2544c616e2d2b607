import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { RunningTask, Task } from '../../view/view.js';
import type { Policy } from '../../policies/policy.js';
import { makePolicy } from '../../policies/make-policy.js';
import { policies } from '../../policies/registry.js';
import { viewOf } from '../../testing/views.js';
import type { ViewParts } from '../../testing/views.js';

const needs = {
  predictorOf: () => ({ slowdown: () => 1 }),
  random: seededRandom(1),
  admission: 'best-effort',
} as const;
const policy: Policy = makePolicy('least-loaded', needs);

const task = (id: string, changes: Partial<Task> = {}): Task => ({
  ...{ id, function: '/a/f', version: '1', namespace: 'a', batch: 1, gpus: 1, memoryMiB: 1000, arrivedAt: 0 },
  class: 'inference',
  ...changes,
});
const running = (id: string, share: number, changes: Partial<Task> = {}): RunningTask => ({
  ...{ task: task(id, changes), share, startedAt: 0 },
});
const gpu = (id: string, changes: Partial<ReportedPlace> = {}): ReportedPlace => ({
  ...{ id, node: 'n', type: 't', mode: 'mps', memoryMiB: 10_000, running: [] },
  ...changes,
});
const decide = (snapshot: ViewParts, by = policy): ReturnType<Policy['decide']> =>
  by.decide(viewOf(snapshot), { kind: 'timer' });

test('every policy of the registry decides about nothing, and an unknown one is refused with those there are', () => {
  for (const name of Object.keys(policies)) {
    const nothing = { starts: [], refused: [], bestEffort: [], order: [], rejected: [] };
    expect(decide({}, makePolicy(name, needs))).toEqual(nothing);
    expect(makePolicy(name, needs).name).toBe(name);
  }
  expect(() => makePolicy('constructor', needs)).toThrow("there is no policy 'constructor'; there are ");
});

describe('the policy least-loaded', () => {
  test('starts the earliest deadline first, each where the least is given away', () => {
    const gpus = [gpu('g0', { running: [running('r', 0.5)] }), gpu('g1')];
    const waiting = [task('best effort'), task('strict', { sloMs: 50, share: 0.6 })];
    expect(decide({ gpus, waiting }).starts.map(({ task, gpu, share }) => [task, gpu, share])).toEqual([
      ['strict', 'g1', 0.6],
      ['best effort', 'g0', 1],
    ]);
  });

  test('has a task wait for memory, and says what is lacking', () => {
    const gpus = [gpu('g0', { running: [running('r', 0.1, { memoryMiB: 9500 })] })];
    const { starts, order, rejected } = decide({ gpus, waiting: [task('t')] });
    expect([starts, order]).toEqual([[], ['t']]);
    const numbers = { availableMiB: 500, needMiB: 1000 };
    expect(rejected).toEqual([{ task: 't', what: 'g0', reason: 'too little free memory', numbers }]);
  });

  test.each([0, NaN])('a task whose memory is not known (%p) has a GPU to itself', (memoryMiB) => {
    const gpus = [gpu('g0', { running: [running('r', 0.1)] }), gpu('g1')];
    const waiting = [task('unknown', { memoryMiB }), task('next', { arrivedAt: 1 })];
    const found = decide({ gpus, waiting }).starts.map(({ task, gpu }) => [task, gpu]);
    expect(found).toEqual([
      ['unknown', 'g1'],
      ['next', 'g0'],
    ]);
  });

  test('puts a task that needs several GPUs on alike ones of one node, or nowhere', () => {
    const gpus = [gpu('g0'), gpu('g1', { node: 'other' }), gpu('g2'), gpu('g3', { type: 'u' })];
    expect(decide({ gpus, waiting: [task('t', { gpus: 2 })] }).starts[0]).toMatchObject({ gpu: 'g0', alsoOn: ['g2'] });
    expect(decide({ gpus, waiting: [task('t', { gpus: 3 })] }).order).toEqual(['t']);
  });

  test('keeps a GPU for one that has waited for 30 s', () => {
    const gpus = [gpu('g0', { running: [running('r', 0.1)] })];
    const waiting = [task('large', { memoryMiB: 9500 }), task('small', { arrivedAt: 29_999 })];
    expect(decide({ at: 29_999, gpus, waiting }).starts.map(({ task }) => task)).toEqual(['small']);
    expect(decide({ at: 30_000, gpus, waiting }).order).toEqual(['large', 'small']);
  });

  test('a deadline that has passed ends the SLO, or the task', () => {
    const snapshot = { at: 100, gpus: [gpu('g0')], waiting: [task('late', { sloMs: 99 })] };
    expect(decide(snapshot)).toMatchObject({ bestEffort: ['late'], refused: [], starts: [{ task: 'late' }] });
    const strict = makePolicy('least-loaded', { ...needs, admission: 'refuse' });
    const refused = [{ task: 'late', reason: 'its SLO has passed' }];
    expect(decide(snapshot, strict)).toMatchObject({ bestEffort: [], refused, starts: [], order: [] });
  });
});
