// Dilu's stages share and place, together and beside others.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { demandOf } from './share.js';
import { dividedSms, fillingInTurn, gpuOf, profiledTask, runningTask, taskOf } from '../../testing/fixtures.js';
import { ArrivalCounts } from '../../view/function-log.js';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import type { Task } from '../../view/view.js';
import { makePolicy } from '../../policies/make-policy.js';
import type { PolicyChoice } from '../../policies/make-policy.js';
import type { Policy } from '../../policies/policy.js';
import { viewOf } from '../../testing/views.js';

const made = (choice: PolicyChoice): Policy =>
  makePolicy(choice, { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' });

/** Where tasks start, with their limits and requests. */
function startsOf(choice: PolicyChoice, waiting: readonly Task[], gpus: readonly ReportedPlace[]): unknown[] {
  const { starts } = made(choice).decide(viewOf({ gpus, waiting }), { kind: 'timer' });
  return starts.map(({ task, gpu, share, request = share }) => [task, gpu, share, request]);
}

/** A task of a function of its own. */
const task = (id: string, changes: Partial<Task> = {}): Task => taskOf(id, { function: `/a/${id}`, ...changes });
const kind = { gpuType: 't', mode: 'mps' } as const;
const demand = (request: number, limit: number): Partial<Task> => ({
  profiledShares: [{ ...kind, request, limit, batch: 1, ms: 10 }],
});
const two = [gpuOf('g0'), gpuOf('g1')];

test.each<[string, Partial<Task>, number, number]>([
  ['its profile', demand(250, 550), 0.25, 0.55],
  ['a limit below the request', demand(400, 300), 0.4, 0.4],
  ['more than a GPU', demand(1200, 3000), 1, 1],
  ['no number', demand(NaN, 300), 1, 1],
  ['what it fills, and twice that', { features: { smUtil: 0.25 } }, 0.3, 0.6],
  ['what it fills, and the whole', { features: { smUtil: 0.6 } }, 0.7, 1],
  ['nothing known', {}, 1, 1],
  ['the share of its owner', { ...demand(250, 550), share: 0.4 }, 0.4, 0.4],
])('request and limit by %s', (_, changes, smRequest, smLimit) => {
  expect(demandOf(taskOf('t', changes), kind)).toEqual({ smRequest, smLimit });
});

describe('policy dilu', () => {
  test('fills a GPU up to its bounds before it opens the next one', () => {
    const waiting = ['a', 'b', 'c'].map((id) => task(id, demand(300, 600)));
    expect(startsOf('dilu', waiting, two)).toEqual([
      ['a', 'g0', 0.6, 0.3],
      ['b', 'g0', 0.6, 0.3],
      ['c', 'g1', 0.6, 0.3],
    ]);
    const wider: PolicyChoice = { base: 'dilu', settings: { gamma: 1.8 } };
    expect(startsOf(wider, waiting, two).at(-1)).toEqual(['c', 'g0', 0.6, 0.3]);
  });

  test('says which bound keeps a task waiting', () => {
    const gpus = [gpuOf('g0', { running: [{ ...runningTask(task('r'), 0.8), request: 0.5 }] })];
    const policy = made('dilu');
    const rejectedOf = (changes: Partial<Task>): unknown =>
      policy.decide(viewOf({ gpus, waiting: [task('t', changes)] }), { kind: 'timer' }).rejected;
    expect(rejectedOf(demand(600, 600))).toEqual([
      {
        ...{ task: 't', what: 'g0', reason: 'its instances request too much' },
        numbers: { requests: 0.5, request: 0.6, most: 1 },
      },
    ]);
    expect(rejectedOf(demand(400, 800))).toEqual([
      {
        ...{ task: 't', what: 'g0', reason: 'its instances have too high limits' },
        numbers: { limits: 0.8, limit: 0.8, most: 1.5 },
      },
    ]);
  });

  test('launches instances beside others, at request and limit of the profile', () => {
    const arrivals = new ArrivalCounts();
    for (let at = 0; at < 10; at += 1) arrivals.add(90_000 + 900 * at);
    const of = profiledTask('f', 400, 0.3, { function: '/a/f', ...demand(200, 450) });
    const gpus = [gpuOf('g0'), gpuOf('g1', { running: [runningTask(task('r', demand(300, 400)), 0.4)] })];
    const policy = made({ base: 'dilu', scale: 'reactive' });
    const view = viewOf({ at: 100_000, gpus, instances: [], functions: [{ task: of, arrivals }] });
    expect(policy.decide(view, { kind: 'tick' }).actions).toMatchObject([
      { kind: 'launch', function: '/a/f', gpus: ['g1'], share: 0.5, request: 0.2, limit: 0.45 },
    ]);
  });
});

describe('beside other stages', () => {
  const three = ['a', 'b', 'c'].map((id) => task(id, demand(300, 600)));

  test('place dilu puts what another share stage gives', () => {
    const filled = three.map((one) => ({ ...one, features: { smUtil: 0.4 } }));
    const gpusOf = (share: string): unknown[] =>
      startsOf({ ...fillingInTurn, share, place: 'dilu' }, filled, two).map((start) => (start as string[])[1]);
    expect(gpusOf('filling')).toEqual(['g0', 'g0', 'g1']);
    expect(gpusOf('whole')).toEqual(['g0', 'g1']);
  });

  test('share dilu keeps its bounds with another place stage', () => {
    expect(startsOf({ ...fillingInTurn, share: 'dilu', place: 'first-fit' }, three, two)).toEqual([
      ['a', 'g0', 0.6, 0.3],
      ['b', 'g0', 0.6, 0.3],
      ['c', 'g1', 0.6, 0.3],
    ]);
  });
});
