// The papers' algorithms as they are printed.
import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { dividedSms, gpuOf, profiledTask, runningTask, taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { ledgerWith, viewOf } from '@gpuwhisk/gpu/testing/views';
import './register.js';

const needs = { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) } as const;
const timer = { kind: 'timer' } as const;

/** SMORE to the letter, where each function slows every workload by `train`. */
function policyOf(train: number): Policy {
  const term = ({ kind }: { kind: string }): number => (kind === 'workload' ? train : 0);
  return makePolicy('smore-literal', { ...needs, degradationsOf: () => ({ term }) });
}

test('five places are drawn, and a task whose draw has none waits for the next round', () => {
  const gpus = Array.from({ length: 50 }, (_, at) => gpuOf(`g${at}`));
  const workloads = gpus
    .slice(1)
    .map(({ id }) => ({ id: `w-${id}`, name: 'steady', node: 'n', device: id, tolerated: 0.1 }));
  const policy = policyOf(1);
  const task = profiledTask('unlucky', 100, 0.3, { function: '/a/f' });
  const waits: unknown[] = [];
  for (let at = 0; at < 20_000; at += 100) {
    const decided = policy.decide(viewOf({ at, gpus, workloads, waiting: [task] }), timer);
    if (decided.starts.length > 0) {
      expect(decided.starts.map(({ gpu }) => gpu)).toEqual(['g0']);
      break;
    }
    waits.push(decided.wakeAt);
  }
  expect(waits.length).toBeGreaterThan(0);
  expect(waits).toEqual(waits.map((_, round) => 100 * (round + 1)));
  expect(waits.length).toBeLessThan(200);
});

test('FaaShare to the letter tells why it did not choose a GPU', () => {
  const loaded = (id: string, share: number) =>
    gpuOf(id, { running: [runningTask(profiledTask(`on ${id}`, 100, share), share)] });
  const full = gpuOf('full', { running: [runningTask(taskOf('r', { memoryMiB: 9500 }), 0.3)] });
  const waiting = [profiledTask('t', 100, 0.2)];
  const view = viewOf({ gpus: [loaded('light', 0.1), loaded('heavy', 0.5), full], waiting });
  const { starts } = makePolicy('faashare-literal', needs).decide(view, timer);
  expect(starts[0]?.choice?.rejected).toMatchObject([
    {
      ...{ what: 'heavy', reason: 'as good as the chosen one, which is listed first' },
      numbers: { running: 1, chosenRunning: 1 },
    },
    { what: 'full', reason: 'too little free memory', numbers: { availableMiB: 500, needMiB: 1000 } },
  ]);
});

test('FaaShare to the letter plans what places can take: memory of others counts', () => {
  const ledger = ledgerWith([gpuOf('g0')]);
  const [row] = ledger.ledger.rows();
  const [status] = row!.status;
  ledger.ledger.heard({ ...row!, status: [{ ...status!, processes: [{ pid: 1, memoryMiB: 500 }] }] }, 0);
  const waiting = [taskOf('unknown', { memoryMiB: NaN }), taskOf('small', { arrivedAt: 1 })];
  const decision = makePolicy('faashare-literal', needs).decide(viewOf({ at: 1, ledger, waiting }), timer);
  expect([decision.starts.map(({ task, gpu }) => [task, gpu]), decision.order]).toEqual([
    [['small', 'g0']],
    ['unknown'],
  ]);
  expect(decision.rejected).toContainEqual({
    ...{ task: 'unknown', what: 'g0', reason: 'too little free memory' },
    numbers: { availableMiB: expect.any(Number), needMiB: 10_000 },
  });
});
