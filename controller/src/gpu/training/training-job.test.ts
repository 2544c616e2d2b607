import { expect, test } from '@jest/globals';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import {
  afterRun,
  endOf,
  lostRun,
  newTrainingJob,
  runOf,
  whenRunning,
  whenStopped,
  withAttempt,
} from './training-job.js';
import type { RunEnd, TrainingJob } from './training-job.js';

const order = {
  ...{ namespace: 'guest', action: '/guest/train', parameters: [], gpus: 2, members: 2, maxRestarts: 1 },
  ...{ timeLimitMs: 100_000, rendezvousMs: 5000, checkpointMiB: 10 },
};

/** A job whose first run goes on. */
function running(changes: Partial<TrainingJob> = {}): TrainingJob {
  return whenRunning(withAttempt({ ...newTrainingJob('0'.repeat(16), order, 0), ...changes }, 'a1'), 'invoker0', 10);
}

const failed: RunEnd = { kind: 'failed', reason: 'Member 1 was ended by SIGKILL.', ranMs: 5000, steps: 7 };
const interrupted: RunEnd = { kind: 'interrupted', reason: 'It gave way.', ranMs: 5000 };

test('a failed run is followed by another one after a delay, until the restarts are used up', () => {
  const waiting = afterRun(running(), failed, 1000);
  expect(waiting).toMatchObject({ state: 'waiting', retryAt: 2000, restarts: 1, ranMs: 5000, reason: failed.reason });
  const second = withAttempt(waiting, 'a2');
  expect(second).toMatchObject({ state: 'queued', attempts: [{ number: 1, steps: 7 }, { number: 2 }] });
  // The next run has what is left of the time limit, and goes where the checkpoints are.
  expect(runOf(second)).toMatchObject({ attempt: 2, limitMs: 95_000, invoker: 'invoker0', checkpointMiB: 10 });
  expect(afterRun(second, failed, 9000)).toMatchObject({
    ...{ state: 'failed', endedAt: 9000, restarts: 1 },
    reason: 'Member 1 was ended by SIGKILL. It was restarted 1 times before.',
  });
});

test('a run that was not seen while it went on has left its checkpoints all the same', () => {
  const unseen = withAttempt(newTrainingJob('0'.repeat(16), order, 0), 'a1');
  const ended = endOf(record(1, { end: 'died', joined: 2, invoker: 'invoker3' }));
  expect(afterRun(unseen, ended, 7000)).toMatchObject({
    ...{ state: 'waiting', invoker: 'invoker3', attempts: [{ startedAt: 1000, endedAt: 7000 }] },
  });
  // It got no container there.
  expect(afterRun(unseen, endOf(record(3, { invoker: 'invoker3' })), 7000)).not.toHaveProperty('invoker');
});

test('an interruption is no restart; its delay grows unless the run made progress', () => {
  let job = running();
  const delays = [];
  for (const steps of [0, 0, 0, 5]) {
    job = afterRun(job, { ...interrupted, steps }, 0);
    delays.push(job.retryAt);
    job = withAttempt(job, 'next');
  }
  expect(delays).toEqual([1000, 2000, 4000, 1000]);
  expect(job).toMatchObject({ restarts: 0, interruptions: 4 });
  expect(afterRun(running(), lostRun, 0)).toMatchObject({ state: 'waiting', interruptions: 1 });
});

test('a job ends with its time limit, with an error that a further run would have, and when it is stopped', () => {
  expect(afterRun(running({ ranMs: 96_000 }), failed, 1)).toMatchObject({
    ...{ state: 'failed', reason: 'It exceeded its time limit of 100000 ms.' },
  });
  expect(afterRun(running(), { ...failed, kind: 'final', reason: 'no' }, 1)).toMatchObject({
    ...{ state: 'failed', reason: 'no' },
  });
  const stopping = whenStopped(running(), 500, 1);
  expect(stopping).toMatchObject({ state: 'stopping', graceMs: 500 });
  expect(afterRun(stopping, interrupted, 2)).toMatchObject({ state: 'stopped' });
  // A run that ends by itself meanwhile has succeeded all the same.
  expect(afterRun(stopping, { ...failed, kind: 'succeeded' }, 2)).toMatchObject({ state: 'succeeded' });
  const waiting = afterRun(running(), failed, 1000);
  expect(whenStopped(waiting, 500, 1500)).toMatchObject({ state: 'stopped', endedAt: 1500 });
});

function record(statusCode: 0 | 1 | 2 | 3, training: JsonObject, timeout = false): WhiskActivation {
  const annotations = [
    { key: 'timeout', value: timeout },
    { key: 'training', value: { job: 'j', attempt: 1, members: 2, ...training } },
  ];
  return {
    ...{ namespace: 'guest', name: 'train', version: '0.0.1', subject: 'guest', activationId: 'a1' },
    ...{ start: 1000, end: 6000, duration: 5000, logs: [], publish: false, annotations },
    response: { statusCode, result: { error: 'why' } },
  };
}

test('a run that ended as it was asked to is no failure, and no success of the job', () => {
  const ended = endOf({
    ...record(0, { end: 'stopped', steps: 3 }),
    response: { statusCode: 0, result: { loss: 1 } },
  });
  expect(ended).toMatchObject({ kind: 'interrupted', reason: 'The job was asked to stop.', steps: 3 });
  expect(afterRun(whenStopped(running(), 500, 1), ended, 2)).toMatchObject({ state: 'stopped' });
  expect(afterRun(running(), ended, 2)).toMatchObject({ state: 'waiting', interruptions: 1, restarts: 0 });
});

test.each([
  ['a success', record(0, { steps: 9 }), 'succeeded'],
  ['a member that died', record(1, { end: 'died' }), 'failed'],
  ['a missed rendezvous', record(1, { end: 'rendezvous' }), 'failed'],
  ['a container that died', record(2, {}), 'failed'],
  ['members that failed when they were asked to stop', record(1, { end: 'stopped' }), 'interrupted'],
  ['an error of the platform', record(3, {}), 'interrupted'],
  ['an error that the action returned', record(1, {}), 'final'],
  ['checkpoints beyond their bound', record(1, { end: 'checkpoint' }), 'final'],
  ['the time limit', record(2, {}, true), 'final'],
])('%s', (_, given, kind) => {
  expect(endOf(given)).toMatchObject({ kind, reason: 'why', ranMs: 5000 });
});
