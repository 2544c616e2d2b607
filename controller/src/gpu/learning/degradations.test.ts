import { beforeEach, expect, test } from '@jest/globals';
import { gpuOf, profiledTask, runningTask } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { Task, WorkloadState } from '@gpuwhisk/gpu/view/view';
import { workloadMember } from '@gpuwhisk/gpu/stages/place/set-effects';
import type { SetMember } from '@gpuwhisk/gpu/predict/degradation';
import type { PairModelKey } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { MeasuredPair } from '@gpuwhisk/gpu/predict/pair-samples';
import { functionKey } from '@gpuwhisk/gpu/ledger/occupancy';
import { Degradations } from './degradations.js';

const training: WorkloadState = {
  ...{ id: 'w', name: 'training', node: 'n', device: 'g0', tolerated: 0.1 },
  features: { smUtil: 0.8 },
};
const call = (): Task => profiledTask('f', 100, 0.5, { featureRecord: { smUtil: 0.5 } });
const member: SetMember = {
  kind: 'function',
  name: functionKey({ action: '/a/f', namespace: 'a' }),
  share: 0.5,
  record: { smUtil: 0.5 },
};

let changes = 0;
let measured: [PairModelKey, Omit<MeasuredPair, 'at'>][] = [];
beforeEach(() => {
  changes = 0;
  measured = [];
});
const kind = { gpuType: 't', mode: 'mps' } as const;
const open = (): Degradations =>
  new Degradations({
    onChange: () => (changes += 1),
    aloneMs: () => 100,
    measured: (...one) => void measured.push(one),
  });

/** Degradations (D) of the workload and of the function, as they are predicted now. */
const predicted = (learned: Degradations): number[] => {
  const [model, workload] = [learned.modelOf(kind), workloadMember(training)];
  return [model.term(workload, member, 1), model.term(member, workload, 1)];
};

test('runs beside workloads correct what is predicted of the function, and reports what is predicted of the workload', () => {
  const learned = open();
  // Together they ask for 1.3 times the GPU.
  expect(predicted(learned)).toEqual([expect.closeTo(0.3), expect.closeTo(0.3)]);
  const run = { task: call(), gpu: { id: 'g0', ...kind }, share: 0.5, ranMs: 110, beside: [] };
  for (let runs = 0; runs < 100; runs += 1) learned.ran(run, [training], [], 100);
  expect(predicted(learned)).toEqual([expect.closeTo(0.3), expect.closeTo(0.1, 1)]);
  expect(changes).toBe(100);
  const gpus: ReportedPlace[] = [gpuOf('g0', { running: [runningTask(call(), 0.5)] })];
  const look = (reportedAt: number, seen = gpus): void =>
    learned.look(viewOf({ gpus: seen, workloads: [{ ...training, measured: 0.5, reportedAt }] }));
  look(0);
  // The same report, another set before it, and no function: nothing is learned.
  look(0);
  look(1, [gpuOf('g0')]);
  look(2);
  look(3, [gpuOf('g0')]);
  look(4, [gpuOf('g0')]);
  expect(changes).toBe(100);
  for (let at = 5; at < 105; at += 1) look(at);
  // Half of the rate is twice the time.
  expect(predicted(learned)[0]).toBeCloseTo(1, 1);
  const copy = open();
  copy.restore(learned.text());
  expect(predicted(copy)).toEqual(predicted(learned));
});

test('a state of another version is refused', () => {
  const learned = open();
  const text = JSON.stringify({ ...(JSON.parse(learned.text()) as object), formatVersion: 99 });
  expect(() => learned.restore(text)).toThrow('version');
});

test('a run and a report of two that were alone together are samples of their pair, with what is known of both', () => {
  const learned = open();
  const known = { function: '/a/f', version: '0.0.1', batch: 4, memoryMiB: 700 };
  learned.showFunctions({ all: () => [known], ofKey: (name) => (name === member.name ? known : undefined) });
  const run = { task: call(), gpu: { id: 'g0', ...kind }, share: 0.5, ranMs: 110, beside: [] };
  learned.ran(run, [training], [], 100);
  const key = kind;
  const sideOfJob = { name: workloadMember(training).name, share: 1, features: { smUtil: 0.8, share: 1 } };
  const sideOfFunction = {
    ...{ name: '/a/f', version: call().version, share: 0.5 },
    features: { smUtil: 0.5, memoryMiB: 700, batch: 4, soloMs: 100, share: 0.5 },
  };
  expect(measured).toEqual([
    [
      { ...key, victim: 'function', neighbour: 'workload' },
      { victim: sideOfFunction, neighbour: sideOfJob, degradation: expect.closeTo(0.1), from: 'run' },
    ],
  ]);
  measured = [];
  const gpus = [gpuOf('g0', { running: [runningTask(call(), 0.5)] })];
  const look = (reportedAt: number, running = gpus): void =>
    learned.look(viewOf({ gpus: running, workloads: [{ ...training, measured: 0.5, reportedAt }] }));
  look(0);
  look(1);
  expect(measured).toEqual([
    [
      { ...key, victim: 'workload', neighbour: 'function' },
      { victim: sideOfJob, neighbour: sideOfFunction, degradation: 1, from: 'report' },
    ],
  ]);
  // Of three the part of one is not known.
  measured = [];
  learned.ran(run, [training], [{ task: call(), share: 0.5 }], 100);
  const crowded = [gpuOf('g0', { running: [runningTask(call(), 0.5), runningTask(call(), 0.3)] })];
  look(2, crowded);
  look(3, crowded);
  expect(measured).toEqual([]);
});
