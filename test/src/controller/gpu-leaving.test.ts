// Devices of a node that will be taken away: instances that are there take runs that end in time, and nothing else does.
import { expect, test } from '@jest/globals';
import type { DeviceHealth, NodeStatus } from '@gpuwhisk/common/gpu';
import { a100 } from '../api/gpu-nodes.js';
import { GpuCluster } from './gpu-cluster.js';

const devices = [a100('GPU-0', { memoryMiB: 40_000 }), a100('GPU-1', { memoryMiB: 40_000 })];
const healthy: DeviceHealth = { state: 'healthy', reasons: [] };
const cordoned: DeviceHealth = { state: 'cordoned', reasons: ['by an operator'] };
const leavingFor = (longestRunMs: number): DeviceHealth => ({ state: 'leaving', reasons: ['soon'], longestRunMs });

const small = { memoryMiB: 1000 };

test.each(['least-loaded', 'faashare', 'smore', 'dilu', 'protean', 'exclusive'])(
  'with policy %s only instances that are there get work, and only work that ends in time',
  async (policy) => {
    const cluster = await GpuCluster.start({ policy });
    const tell = async (healths: DeviceHealth[], changes: Partial<NodeStatus> = {}): Promise<void> => {
      const status = healths.map((health, at) => ({
        uuid: `GPU-${at}`,
        at: 0,
        usedMemoryMiB: 0,
        health,
        processes: [],
      }));
      await cluster.tell({ devices, status, ...changes });
      await cluster.clock.runFor(100);
    };
    await tell([healthy, cordoned]);
    await cluster.accept('f', small);
    const residents = cluster.residents().map((one) => ({ ...one, activations: [] }));
    await cluster.finish('f');
    const noticed = { residents, leavesAt: cluster.clock.now() + 100_000 };
    // Time limits are a minute.
    await tell([leavingFor(90_000), cordoned], noticed);
    await cluster.accept('f', small);
    await cluster.accept('g', small);
    await cluster.clock.runFor(100);
    expect(cluster.running).toEqual(['f']);
    await cluster.finish('f');
    await tell([leavingFor(30_000), cordoned], noticed);
    await cluster.accept('f', small);
    await cluster.clock.runFor(100);
    expect(cluster.running).toEqual([]);
    const ran: string[] = [];
    for (let look = 0; look < 3; look += 1) {
      await tell([leavingFor(30_000), healthy], noticed);
      for (const { message } of [...cluster.arrivals]) {
        ran.push(`${message.action.name} on ${message.gpu?.devices.join()}`);
        await cluster.finish(message.action.name);
      }
    }
    expect(ran.sort()).toEqual(['f on GPU-1', 'g on GPU-1']);
    expect(await cluster.faults()).toBe(0);
  },
);
