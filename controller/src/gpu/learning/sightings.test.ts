import { expect, test } from '@jest/globals';
import type { DeviceStatus, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import { FunctionProfiles } from '@gpuwhisk/gpu/profile/function-profiles';
import { featuresOf, hasStrangers, learnFromLook } from './sightings.js';

const share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB: 100 } as const;
const resident = (name: string): Resident => ({
  ...{ container: `c-${name}`, action: `/guest/${name}`, device: 'GPU-0', share, memoryMiB: 100, activations: [] },
});
const node = (utilisations: Record<string, number>, figures: Partial<DeviceStatus> = {}): NodeStatus => ({
  ...{ invoker: 'invoker0', version: 1, at: 1 },
  devices: [
    {
      ...{ uuid: 'GPU-0', index: 0, name: 'NVIDIA A100', type: 'a100-40', smCount: 108, memoryMiB: 40_000 },
      ...{ mode: 'mps', slices: [], simulated: false },
    },
  ],
  status: [
    {
      ...{ uuid: 'GPU-0', at: 1, usedMemoryMiB: 0, health: { state: 'healthy', reasons: [] } },
      processes: Object.entries(utilisations).map(([name, utilisation], at) => ({
        ...{ pid: at + 1, memoryMiB: 10, utilisation, container: `c-${name}` },
      })),
      ...figures,
    },
  ],
  residents: ['a', 'b'].map(resident),
});

test('memory bandwidth is a function’s own where nobody else computes', () => {
  const profiles = new FunctionProfiles();
  learnFromLook(profiles, node({ a: 0.5, b: 0.3 }, { dramActivity: 0.9 }));
  learnFromLook(profiles, node({ a: 0.4, b: 0 }, { dramActivity: 0.6 }));
  learnFromLook(profiles, node({ stranger: 0.4 }, { dramActivity: 0.7 }));
  expect(profiles.all().map(({ function: name, features }) => [name, features])).toEqual([
    ['/guest/b', { smUtil: 0.3, dramUtil: 0, l2Util: 0 }],
    ['/guest/a', { smUtil: 0.5, dramUtil: 0.6, l2Util: 0 }],
  ]);
});

test('what the driver does not tell is what the owner says', () => {
  const declared = { smUtil: 0.9, l2Util: 0.4 };
  expect(featuresOf({ smUtil: 0.5, dramUtil: 0.2, l2Util: 0 }, declared)).toEqual({
    ...{ smUtil: 0.5, dramUtil: 0.2, l2Util: 0.4 },
  });
  expect(featuresOf(undefined, declared)).toEqual({ smUtil: 0.9, dramUtil: 0, l2Util: 0.4 });
  expect(featuresOf(undefined, { l2Util: 0.4 })).toBeUndefined();
});

test('a process that is in no container of the platform is a stranger', () => {
  const [status] = node({ a: 0.5 }).status;
  expect([hasStrangers(status), hasStrangers(undefined)]).toEqual([false, false]);
  expect(hasStrangers({ ...status!, processes: [{ pid: 1, memoryMiB: 1 }] })).toBe(true);
});
