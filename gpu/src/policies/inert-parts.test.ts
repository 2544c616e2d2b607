import { describe, expect, test } from '@jest/globals';
import type { Device, DeviceMode } from '@gpuwhisk/common/gpu';
import { inertLine, inertParts } from './inert-parts.js';
import type { ClusterFacts } from './inert-parts.js';
import { compositionOf } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { policies } from './registry.js';

const device = (mode: DeviceMode, changes: Partial<Device> = {}): Device => ({
  ...{ uuid: 'GPU-0', index: 0, name: 'NVIDIA A100', type: 'a100-40', smCount: 108, memoryMiB: 40_960 },
  ...{ mode, slices: [], simulated: false },
  ...changes,
});
const whole: ClusterFacts = {
  nodes: [{ devices: [device('mps')], movesShares: true, cuts: true }],
  ...{ workloads: 1, isProfiled: true, rents: true, trains: true, isCluster: false },
};
const linesOf = (policy: PolicyChoice, changes: Partial<ClusterFacts> = {}): string[] =>
  inertParts(compositionOf(policy), { ...whole, ...changes }).map(inertLine);
const withDevices = (...devices: Device[]): Partial<ClusterFacts> => ({ nodes: [{ devices, cuts: true }] });

test.each(Object.keys(policies))('where everything is there, all parts of %s work', (name) => {
  expect(linesOf(name)).toEqual([]);
});

test('without GPUs nothing is said', () => {
  expect(linesOf('protean', { nodes: [], workloads: 0, rents: false })).toEqual([]);
});

describe('shares', () => {
  const inSlices = ': no GPU has MPS, so that functions are not held to shares; npm start -- --set gpu.manage.mps=auto';

  test.each([
    ['auto', 'plan sub-queues'],
    ['faashare', 'plan sub-queues'],
    ['smore', 'plan by-degradation'],
    [{ base: 'exclusive', share: 'filling' }, 'share filling'],
  ])('of %j are not kept in time slices', (policy, part) => {
    expect(linesOf(policy, withDevices(device('timeslice')))).toEqual([part + inSlices]);
  });

  test('are not kept where a GPU takes one process at a time', () => {
    expect(linesOf('auto', withDevices(device('exclusive')))).toEqual([
      'plan sub-queues: every GPU is in exclusive mode without MPS, so that one function at a time runs there; npm start -- --set gpu.manage.mps=true',
    ]);
  });

  test.each([
    ['one GPU has MPS', withDevices(device('timeslice'), device('mps'))],
    ['a GPU returns to MPS', withDevices(device('timeslice', { returnsToMps: true }))],
    ['it has kernel tokens', { nodes: [{ devices: [device('timeslice')], movesShares: true }] }],
    ['it is cut into slices', withDevices(device('mig'))],
  ])('are kept as %s', (_, facts) => {
    expect(linesOf('auto', facts)).toEqual([]);
  });

  test('of exclusive and unlimited are none that anything is held to', () => {
    expect(linesOf('exclusive', withDevices(device('timeslice')))).toEqual([]);
    expect(linesOf({ base: 'exclusive', share: 'unlimited' }, withDevices(device('timeslice')))).toEqual([]);
  });

  test('of dilu need kernel tokens to move, and profiles', () => {
    expect(linesOf('dilu', { ...withDevices(device('mps')), isProfiled: false })).toEqual([
      'share dilu: no GPU has kernel tokens, so that shares do not move between request and limit; npm start -- --set gpu.tokens=true',
      'share dilu: no function has been profiled, so that requests and limits are assumed; wsk gpu profile ACTION_NAME',
    ]);
  });
});

test('smore is without effect on training where no workload is registered', () => {
  const why = 'no workload is registered that functions could run beside; wsk gpu workload run --name NAME -- COMMAND';
  expect(linesOf('smore', { workloads: 0 })).toEqual([`plan by-degradation: ${why}`, `preempt workload-guard: ${why}`]);
  const placed = { base: 'exclusive', share: 'filling', place: 'smore' };
  expect(linesOf(placed, { workloads: 0 })).toEqual([`place smore: ${why}`]);
});

describe('protean', () => {
  test('cuts nothing where no GPU can be cut', () => {
    const old = { type: 'rtx3090' };
    expect(linesOf('protean', withDevices(device('mps', { ...old, simulated: true })))).toEqual([
      'geometry protean: MIG cuts no GPU of type rtx3090; npm start -- --gpus sim:a100-40',
    ]);
    expect(linesOf('protean', withDevices(device('mps', old), device('mps', { type: 'v100-32' })))).toEqual([
      'geometry protean: MIG cuts no GPU of type rtx3090, v100-32; wsk gpu policy set auto',
    ]);
  });

  test('cuts nothing where its nodes do not permit it', () => {
    expect(linesOf('protean', { nodes: [{ devices: [device('mps')], cuts: false }] })).toEqual([
      'geometry protean: no node may cut its GPUs into slices; npm start -- --set gpu.manage.mig=true',
    ]);
    expect(linesOf('protean', { nodes: [{ devices: [device('mps')] }] })).toEqual([]);
  });

  test('rents no machine without a provider', () => {
    expect(linesOf('protean', { rents: false })).toEqual([
      'procure protean: no provider of machines is set up; npm run cluster -- --set gpu.procure.provider=emulated',
    ]);
  });
});

test('a scale stage by forecasts launches nothing while none is trained', () => {
  expect(linesOf({ base: 'auto', scale: 'smore' }, { trains: false })).toEqual([
    'scale smore: no forecast is trained; npm start -- --set gpu.learning.retrain=true',
  ]);
});

test('in a cluster the setting of its processes is named', () => {
  expect(linesOf('dilu', { ...withDevices(device('mps')), isCluster: true })).toEqual([
    'share dilu: no GPU has kernel tokens, so that shares do not move between request and limit; set gpu.tokens=true for the invokers and start them again',
  ]);
  expect(linesOf('protean', { rents: false, isCluster: true })).toEqual([
    'procure protean: no provider of machines is set up; set gpu.procure.provider for the controllers and start them again',
  ]);
});
