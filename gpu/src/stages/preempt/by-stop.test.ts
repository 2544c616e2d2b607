import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../../policies/make-policy.js';
import { dividedSms, taskOf } from '../../testing/fixtures.js';
import { replay } from '../../simulate/replay.js';
import type { ReplayJob, ReplayRun } from '../../simulate/replay.js';
import type { Task } from '../../view/view.js';

const truth = {
  noise: 0,
  slowdowns: (clients: readonly unknown[]) => new Float64Array(clients.length).fill(1),
  used: () => 1,
};
const places = [{ id: 'g0', node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000 }];

function job(id: string, soloMs: number, changes: Partial<Task>, isIdempotent = false): ReplayJob {
  const task = taskOf(id, { function: `/a/${id}`, soloMs, memoryMiB: 6000, ...changes });
  return { workload: id, soloMs, startMs: 10, isIdempotent, task };
}

function run(jobs: ReplayJob[], preempt = 'by-stop'): ReplayRun {
  const random = seededRandom(1);
  const policy = makePolicy(
    { base: 'least-loaded', preempt, settings: preempt === 'none' ? {} : { graceMs: 500 } },
    { predictorOf: () => dividedSms, random, admission: 'best-effort' },
  );
  return replay(jobs, { places, warmMs: 1 }, truth, policy, random);
}

const endOf = ({ finished }: ReplayRun, id: string): number | undefined =>
  finished.find(({ job: { task } }) => task.id === id)?.finishedAt;

test('best effort without a right to be repeated is stopped after its grace where an SLO depends on it', () => {
  const strict = job('strict', 1000, { arrivedAt: 1000, sloMs: 3000 });
  const stopped = run([job('long', 60_000, {}), strict]);
  expect(stopped.stopped).toEqual(['long']);
  expect(endOf(stopped, 'strict')).toBeLessThanOrEqual(4000);
  expect(endOf(run([job('long', 60_000, {}), strict], 'none'), 'strict')).toBeGreaterThan(60_000);
});

test('best effort that may be repeated runs again, whole', () => {
  const shown = run([job('long', 60_000, {}, true), job('strict', 1000, { arrivedAt: 1000, sloMs: 3000 })]);
  expect(shown.stopped).toEqual([]);
  expect(endOf(shown, 'strict')).toBeLessThanOrEqual(4000);
  expect(endOf(shown, 'long')).toBeGreaterThan(62_000);
});

test('nothing is stopped for a task that misses its SLO all the same, nor for best effort, nor work that must go on', () => {
  const none = (jobs: ReplayJob[]): void => expect(run(jobs).actions).toEqual([]);
  none([job('long', 60_000, {}), job('hopeless', 1000, { arrivedAt: 1000, sloMs: 1200 })]);
  none([job('long', 60_000, {}), job('other', 1000, { arrivedAt: 1000 })]);
  none([job('long', 60_000, { sloMs: 100_000 }), job('strict', 1000, { arrivedAt: 1000, sloMs: 3000 })]);
  none([job('training', 60_000, { mustNotStop: true }), job('strict', 1000, { arrivedAt: 1000, sloMs: 3000 })]);
});

test('a run that ends within its grace is not stopped', () => {
  const shown = run([job('nearly', 1200, {}), job('strict', 1000, { arrivedAt: 1000, sloMs: 3000 })]);
  expect([shown.stopped, endOf(shown, 'nearly')]).toEqual([[], 1210]);
});
