import { expect, test } from '@jest/globals';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { GpuHarness } from './gpu-harness.js';

/** A workload; the harness starts process N at 1000 + N. */
const workload = (id: string, changes: Partial<Workload> = {}): Workload => ({
  ...{ id, name: id, origin: 'started', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0.05 },
  ...changes,
});

test('workloads that were started and have ended without a word are told, and no others', async () => {
  const harness = await GpuHarness.open();
  for (const pid of [2, 4, 5]) harness.dead.add(pid);
  const started = harness.clock.now();
  const all = [
    workload('runs', { pid: 1, processStart: 1001 }),
    workload('killed', { pid: 2, processStart: 1002 }),
    workload('number used again', { pid: 3, processStart: 77 }),
    workload('on another node', { pid: 4, processStart: 1004, invoker: 'invoker1' }),
    workload('registered', { pid: 5, origin: 'registered' }),
    workload('start not told', { pid: 6 }),
    workload('never told', { since: started }),
  ];
  for (const one of all) await harness.state.setRow(workloadTable, one.id, { ...one } as unknown as JsonObject);
  const ended = async (): Promise<string[]> =>
    [...(await harness.state.rows(workloadTable))]
      .filter(([, row]) => (row as unknown as Workload).ended)
      .map(([id]) => id);
  await harness.look(6);
  expect(await ended()).toEqual(['killed', 'number used again']);
  await harness.look(60);
  expect(await ended()).toEqual(['killed', 'number used again', 'never told']);
});
