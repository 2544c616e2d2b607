import { expect, test } from '@jest/globals';
import type { DeviceMode, GpuIsolation } from '@gpuwhisk/common/gpu';
import { mayShare } from './fact-filters.js';
import type { Tenant } from '../../ledger/account.js';

const tenant = (isolation: GpuIsolation, changes: Partial<Tenant> = {}): Tenant => ({
  ...{ action: '/alice/a', namespace: 'alice', isolation, gpus: 1 },
  ...changes,
});
const other = { action: '/alice/b' };
const bobs = { action: '/bob/a', namespace: 'bob' };

test.each<[string, DeviceMode, Tenant, Tenant, boolean]>([
  ['two of a namespace', 'mps', tenant('namespace'), tenant('namespace', other), true],
  ['two namespaces', 'mps', tenant('namespace'), tenant('namespace', bobs), false],
  ['two namespaces, one willing', 'mps', tenant('shared'), tenant('namespace', bobs), false],
  ['two namespaces, both willing', 'mps', tenant('shared'), tenant('shared', bobs), true],
  ['two namespaces on a slice', 'mig', tenant('namespace'), tenant('namespace', bobs), false],
  ['two namespaces in turns', 'timeslice', tenant('namespace'), tenant('namespace', bobs), true],
  ['one that is to be alone', 'mps', tenant('exclusive'), tenant('shared', other), false],
  ['one that is to be alone, in turns', 'timeslice', tenant('shared', other), tenant('exclusive'), false],
  ['one that is to be alone, and itself', 'mps', tenant('exclusive'), tenant('exclusive'), true],
  ['a pre-warmer', 'mps', { gpus: 1 }, tenant('namespace'), true],
  ['a pre-warmer and one that is to be alone', 'mps', { gpus: 1 }, tenant('exclusive'), false],
  ['any two where one process is served', 'exclusive', { gpus: 1 }, tenant('shared'), false],
  ['one of several devices', 'mps', tenant('shared', { gpus: 2 }), tenant('shared', { ...other, gpus: 2 }), false],
  ['one of several devices, in turns', 'timeslice', tenant('shared', { gpus: 2 }), tenant('shared', other), true],
])('%s (%s)', (_, mode, one, another, may) => {
  expect([mayShare(mode, one, another), mayShare(mode, another, one)]).toEqual([may, may]);
});
