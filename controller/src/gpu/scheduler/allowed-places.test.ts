import { expect, test } from '@jest/globals';
import type { Device, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { PlacementRequest } from '@gpuwhisk/gpu/place/least-loaded';
import { AllowedPlaces } from './allowed-places.js';
import { seenPlaces } from './gpu-snapshot.js';

const share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB: 100 } as const;
const device = (uuid: string): Device => ({
  ...{ uuid, index: 0, name: 'NVIDIA A100', type: 'a100-40', smCount: 108, memoryMiB: 40_000 },
  ...{ mode: 'mps', slices: [], simulated: false },
});
const running = (isolation: Resident['isolation']): Resident => ({
  ...{ container: 'c', action: '/guest/other', namespace: 'guest', device: 'GPU-0', share, memoryMiB: 100 },
  ...{ activations: ['run'], ...(isolation && { isolation }) },
});
const node = (invoker: string, uuid: string, residents: Resident[] = []): NodeStatus => ({
  ...{ invoker, version: 1, at: 1, devices: [device(uuid)], residents },
  status: [{ uuid, at: 1, usedMemoryMiB: 0, health: { state: 'healthy', reasons: [] }, processes: [] }],
});
const request = (namespace: string): PlacementRequest => ({
  ...{ action: '/guest/a', namespace, share, gpus: 1, isolation: 'namespace', batch: 1 },
});

const nodes = [node('invoker0', 'GPU-0', [running('namespace')]), node('invoker1', 'GPU-1')];
const view = { nodes, reservations: [], kept: new Set<string>(), epoch: 1, at: 1 };

test('isolation closes a place to some, and a refusal all of a node until it is heard of again', () => {
  const asked: ReadonlyMap<string, number>[] = [];
  const allowed = new AllowedPlaces(
    seenPlaces(view, () => undefined),
    (refusedAtMs) => {
      asked.push(refusedAtMs);
      return new Set(['invoker0']);
    },
  );
  const idsFor = (namespace: string, refusedAtMs = new Map<string, number>()): string[] => [
    ...allowed.of(request(namespace), refusedAtMs),
  ];
  expect(idsFor('guest')).toEqual(['GPU-0', 'GPU-1']);
  expect(idsFor('stranger')).toEqual(['GPU-1']);
  expect(asked).toEqual([]);
  const refused = new Map([['invoker1', 5]]);
  expect(idsFor('guest', refused)).toEqual(['GPU-0']);
  expect(idsFor('stranger', refused)).toEqual([]);
  expect(asked).toEqual([refused, refused]);
});
