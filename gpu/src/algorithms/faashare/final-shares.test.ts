import { expect, test } from '@jest/globals';
import type { QuotaChoice, QuotaJob, Quotas } from '../../share/quotas.js';
import { dividedSms, gpuOf, profiledTask, runningTask } from '../../testing/fixtures.js';
import { viewOf } from '../../testing/views.js';
import { seenPlaces } from '../../view/running.js';
import type { Task } from '../../view/view.js';
import { finalShares as sharesWith } from './final-shares.js';
import { PredictionCache } from '../../stages/order/set-predictions.js';
import { add, firstQueueOn, memberOf, outlookOf } from './sub-queue.js';
import type { SubQueue } from './sub-queue.js';

const filled = 0.7;
const options = { minShareGain: 0.02, takeEveryMiss: 0 };
const finalShares = (queue: SubQueue, quotas: Quotas | undefined) => sharesWith(queue, quotas, options);
const task = (id: string, soloMs = 100, changes: Partial<Task> = {}): Task => profiledTask(id, soloMs, 0.6, changes);

/** What runs since `at` 0, and tasks that join it at `at`, at the shares that they fill. */
function queueOf(members: readonly Task[], running: readonly Task[] = [], at = 0): SubQueue {
  const gpu = gpuOf('g0', { running: running.map((one) => runningTask(one, filled)) });
  const [place] = seenPlaces(viewOf({ gpus: [gpu] }));
  const queue = firstQueueOn(place!, new PredictionCache(() => dividedSms).of(place!), at);
  for (const one of members) add(queue, memberOf(one, queue));
  return queue;
}

/** A quota stage with one answer and measurements by shares, which keeps what it was asked. */
function answering(
  source: QuotaChoice['source'],
  shares: number[],
  measured: Record<string, number[]> = {},
): Quotas & { asked: { set: readonly QuotaJob[]; budgetsMs: readonly number[]; leftMs: readonly number[] }[] } {
  const asked: ReturnType<typeof answering>['asked'] = [];
  return {
    asked,
    shareFor(set, _gpu, budgetsMs, _fixed, leftMs = []) {
      asked.push({ set, budgetsMs, leftMs });
      return { shares, source, unmet: [] };
    },
    slowdownsAt: (_set, _gpu, at) => measured[at.join(' ')],
  };
}

const sharesOf = ({ members }: SubQueue): number[] => members.map(({ share }) => share);

test('measurements decide whether a hit keeps a budget, whatever is predicted', () => {
  const decide = (atFilling: number, atOthers: number): unknown => {
    const queue = queueOf([task('strict', 100, { sloMs: 130 }), task('other')]);
    const measured = { '0.7 0.7': [atFilling, 1.6], '0.3 0.5': [atOthers, 1.6] };
    const { source } = finalShares(queue, answering('hit', [0.3, 0.5], measured));
    return [source, sharesOf(queue), Math.round(outlookOf(queue).endsAt[0]!)];
  };
  // At 30 % of the SMs 200 ms are predicted.
  expect(decide(1.5, 1.25)).toEqual(['hit', [0.3, 0.5], 125]);
  expect(decide(1.25, 1.5)).toEqual(['filling', [0.7, 0.7], 125]);
  expect(decide(1.25, 1.26)).toEqual(['filling', [0.7, 0.7], 125]);
});

test('without measured filling shares a hit is compared with their prediction', () => {
  const decide = (slowdown: number): unknown => {
    const queue = queueOf([task('one'), task('other')]);
    const { source, chosenMs, fillingMs } = finalShares(
      queue,
      answering('hit', [0.5, 0.5], { '0.5 0.5': [slowdown, slowdown] }),
    );
    return [source, Math.round(chosenMs), Math.round(fillingMs)];
  };
  // Predicted: 1.2 of the SMs are asked for, and bandwidth costs 6 %.
  expect(decide(1.2)).toEqual(['hit', 240, 254]);
  expect(decide(1.26)).toEqual(['filling', 254, 254]);
});

test('on a miss, the answer is taken only where a task is late without it, and at a bounded cost', () => {
  const decide = (source: 'nearest' | 'guardrail', sloMs: number, otherMs: number): unknown => {
    const queue = queueOf([task('strict', 100, { sloMs }), task('other', otherMs)]);
    const sharing = finalShares(queue, answering(source, [0.7, 0.3]));
    return [sharing.answer, sharing.source, sharesOf(queue)];
  };
  expect(decide('guardrail', 120, 100)).toEqual(['guardrail', 'guardrail', [0.7, 0.3]]);
  expect(decide('nearest', 120, 100)).toEqual(['nearest', 'nearest', [0.7, 0.3]]);
  expect(decide('guardrail', 1000, 100)).toEqual(['guardrail', 'filling', [0.7, 0.7]]);
  expect(decide('nearest', 1000, 100)).toEqual(['nearest', 'filling', [0.7, 0.7]]);
  // The other one would end after 20 s in place of 10.
  expect(decide('guardrail', 120, 10_000)).toEqual(['guardrail', 'filling', [0.7, 0.7]]);
});

test('if that is set, the answer on a miss is taken unless more tasks are late', () => {
  const decide = (otherSloMs: number): unknown => {
    const queue = queueOf([task('one'), task('other', 100, { sloMs: otherSloMs })]);
    return sharesWith(queue, answering('guardrail', [0.7, 0.3]), { ...options, takeEveryMiss: 1 }).source;
  };
  expect([decide(1000), decide(150)]).toEqual(['guardrail', 'filling']);
});

test('the table is asked for the set with residents, by what is left of them', () => {
  const quotas = answering('guardrail', [0.7, 0.7]);
  const resident = task('resident', 100, { sloMs: 100, function: '/a/resident' });
  finalShares(queueOf([task('one', 80)], [resident], 50), quotas);
  const [{ set, budgetsMs, leftMs }] = quotas.asked as [(typeof quotas.asked)[number]];
  expect(set.map(({ function: name }) => name)).toEqual(['/a/resident', '/a/f']);
  expect(leftMs).toEqual([50, 80]);
  // The half that is left has 50 ms, as the whole would have 100.
  expect(budgetsMs).toEqual([100, Infinity]);
});

test('nothing is asked where owners have fixed all shares, or there is no table', () => {
  const quotas = answering('hit', [0.1, 0.1]);
  const fixed = queueOf([task('one', 100, { share: 0.2 }), task('other', 100, { share: 0.3 })]);
  expect(finalShares(fixed, quotas)).toMatchObject({ source: 'owner', tasks: 2 });
  expect([quotas.asked, sharesOf(fixed)]).toEqual([[], [0.2, 0.3]]);
  const sharing = finalShares(queueOf([task('one')]), undefined);
  expect([sharing.source, sharing.answer]).toEqual(['filling', undefined]);
});

test('an answer beyond what a namespace may have is not taken', () => {
  const queue = queueOf([task('one', 100, { maxShare: 0.3 }), task('other')]);
  const measured = { '0.5 0.5': [1, 1] };
  expect(finalShares(queue, answering('hit', [0.5, 0.5], measured)).source).toBe('filling');
  expect(sharesOf(queue)).toEqual([0.3, 0.7]);
});
