import { expect, test } from '@jest/globals';
import { gpuOf, taskOf } from '../../testing/fixtures.js';
import { viewOf } from '../../testing/views.js';
import type { Start } from '../../view/decision.js';
import { boundStarts } from './bind.js';

/** What the ledger counts once a task is bound to a place where an instance of its function idles with 50 % of the SMs. */
function countedWith(start: Pick<Start, 'share' | 'request'>): Record<string, number | undefined> {
  const idle = [{ function: '/a/f', namespace: 'a', share: 0.5, memoryMiB: 1000 }];
  const view = viewOf({ gpus: [gpuOf('g0', { idle })], waiting: [taskOf('t')] });
  const [bound] = boundStarts(view, [{ task: 't', gpu: 'g0', reason: '', ...start }], []);
  const { shareClass, smRequest, smLimit } = bound?.choice?.placement?.share ?? {};
  const { load, classSum } = view.ledger.ledger.account('g0') ?? {};
  return { shareClass, smRequest, smLimit, load, classSum };
}

test('a task in an instance of a larger class than it was given counts with what the instance holds', () => {
  expect(countedWith({ share: 0.3 })).toEqual({
    shareClass: 50,
    smRequest: 0.5,
    smLimit: 0.5,
    load: 0.5,
    classSum: 500,
  });
});

test('where tokens hold it to a request and a limit within the class, it counts with its request', () => {
  const { shareClass, smRequest, smLimit } = countedWith({ share: 0.4, request: 0.2 });
  expect({ shareClass, smRequest, smLimit }).toEqual({ shareClass: 50, smRequest: 0.2, smLimit: 0.4 });
});
