import { expect, test } from '@jest/globals';
import { gpuOf, runningTask, taskOf } from '../testing/fixtures.js';
import { obstacle, occupy, gpuAccountsOf, vacate } from './gpu-account.js';

const guests = taskOf('guests', { namespace: 'guest', isolation: 'namespace' });
const others = taskOf('others', { namespace: 'c', isolation: 'namespace' });

test('isolation closes a GPU to other namespaces, also for a task put there in the same decision', () => {
  const [used, free] = gpuAccountsOf({ gpus: [gpuOf('G0', { running: [runningTask(guests, 0.5)] }), gpuOf('G1')] });
  expect(obstacle(used!, others)).toEqual({
    ...{ reason: 'isolation: it is shared with others', numbers: { others: 1 } },
  });
  expect(obstacle(used!, { ...guests, id: 'another' })).toBeUndefined();
  expect(obstacle(free!, guests)).toBeUndefined();
  occupy(free!, others, 0.5);
  expect(obstacle(free!, guests)?.reason).toMatch(/^isolation/);
  vacate(free!, others, 0.5);
  expect(obstacle(free!, guests)).toBeUndefined();
});

test('a task of several devices under MPS is beside no other', () => {
  const [used] = gpuAccountsOf({ gpus: [gpuOf('G0', { running: [runningTask(guests, 0.5)] })] });
  expect(obstacle(used!, { ...guests, id: 'pair', gpus: 2 })?.reason).toMatch(/^isolation/);
});

test('facts that were counted go before what a snapshot shows', () => {
  const facts = { availableMiB: 500, clients: 48, busy: 0, workloads: 0, staying: [] };
  const [room] = gpuAccountsOf({ gpus: [gpuOf('G0', { facts })] });
  expect(obstacle(room!, guests)?.reason).toBe('it has as many clients as MPS serves');
  // The MPS server of a 1g slice of an A100 takes six clients.
  const onSlice = { ...facts, clients: 6, clientLimit: 6 };
  const [slice] = gpuAccountsOf({ gpus: [gpuOf('G0', { mode: 'mig', facts: onSlice })] });
  expect(obstacle(slice!, guests)?.reason).toBe('it has as many clients as MPS serves');
  const [small] = gpuAccountsOf({ gpus: [gpuOf('G0', { facts: { ...facts, clients: 0 } })] });
  expect(obstacle(small!, guests)).toEqual({
    ...{ reason: 'too little free memory', numbers: { availableMiB: 500, needMiB: 1000 } },
  });
});
