import { expect, test } from '@jest/globals';
import type { ReportedPlace } from '../../simulate/node-rows.js';
import { gpuOf, runningTask, taskOf } from '../../testing/fixtures.js';
import { ledgerWith } from '../../testing/views.js';
import { PlaceFork } from '../../ledger/fork.js';
import { obstacle, workOf } from './plan-places.js';

const guests = taskOf('guests', { namespace: 'guest', isolation: 'namespace' });
const others = taskOf('others', { namespace: 'c', isolation: 'namespace' });

function forkOf(gpu: Partial<ReportedPlace>): PlaceFork {
  const [account] = ledgerWith([gpuOf('G0', gpu)]).ledger.accounts();
  return PlaceFork.of(account!, []);
}
const idle = (count: number) =>
  Array.from({ length: count }, () => ({ function: '/a/i', namespace: 'guest', share: 1, memoryMiB: 1 }));

test('isolation closes a place to other namespaces, also for a task put there in the same plan', () => {
  const used = forkOf({ running: [runningTask(guests, 0.5)] });
  expect(obstacle(used, others)).toEqual({
    ...{ reason: 'isolation: it is shared with others', numbers: { others: 1 } },
  });
  expect(obstacle(used, { ...guests, id: 'another' })).toBeUndefined();
  const free = forkOf({});
  expect(obstacle(free, guests)).toBeUndefined();
  free.hold(workOf(others), 0.5);
  expect(obstacle(free, guests)?.reason).toMatch(/^isolation/);
  free.release(workOf(others), 0.5);
  expect(obstacle(free, guests)).toBeUndefined();
});

test('a task of several devices under MPS is beside no other', () => {
  const used = forkOf({ running: [runningTask(guests, 0.5)] });
  expect(obstacle(used, { ...guests, id: 'pair', gpus: 2 })?.reason).toMatch(/^isolation/);
});

test('idle instances are clients, and their memory can be had', () => {
  expect(obstacle(forkOf({ idle: idle(48) }), guests)?.reason).toBe('it has as many clients as MPS serves');
  const full = forkOf({ idle: [{ ...idle(1)[0]!, memoryMiB: 9500 }] });
  expect(obstacle(full, guests)).toBeUndefined();
  full.hold(workOf({ ...others, isolation: 'shared', memoryMiB: 9500 }), 0.5);
  expect(obstacle(full, { ...guests, isolation: 'shared' })).toEqual({
    ...{ reason: 'too little free memory', numbers: { availableMiB: 500, needMiB: 1000 } },
  });
});

test('a fork changes by itself, and its shares are sums of thousandths', () => {
  const [account] = ledgerWith([gpuOf('G0', { running: [runningTask(guests, 0.1)] })]).ledger.accounts();
  const fork = PlaceFork.of(account!, [0.1]);
  const copy = fork.copy();
  copy.hold(workOf(others), 0.2);
  const sums = ({ load, clients, busy, availableMiB }: PlaceFork): number[] => [load, clients, busy, availableMiB];
  expect([sums(copy), sums(fork)]).toEqual([
    [0.3, 2, 2, 8000],
    [0.1, 1, 1, 9000],
  ]);
  copy.reshare(0.2, 0.7);
  expect([copy.load, sums(copy.emptied())]).toEqual([0.8, [0, 0, 0, 10_000]]);
  expect([account?.clients, account?.availableMiB]).toEqual([1, 9000]);
});
