import { expect, test } from '@jest/globals';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { EndedWorkloads } from './cluster-reports.js';
import { systemProcesses } from './host/host-processes.js';

test('a registered workload has ended once its process, which was seen before, is gone or another one has its number', async () => {
  const state = embeddedState(systemClock);
  const starts = new Map([
    [1, 100],
    [2, 200],
    [3, 300],
  ]);
  const ended = new EndedWorkloads({
    ...{ invoker: 'invoker0', state, clock: systemClock, logger: createLogger({ level: 'silent' }) },
    processes: { ...systemProcesses, startOf: (pid) => Promise.resolve(starts.get(pid)) },
  });
  const register = async (id: string, fields: Partial<Workload>): Promise<void> => {
    const workload: Workload = {
      ...{ id, name: id, origin: 'registered', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0.1 },
      ...{ namespace: 'guest', ...fields },
    };
    await state.setRow(workloadTable, id, { ...workload } as unknown as JsonValue);
  };
  const look = async (): Promise<string[]> => {
    for (let looks = 0; looks < 5; looks += 1) await ended.look();
    const rows = [...(await state.rows(workloadTable)).values()] as unknown as Workload[];
    return rows.filter((one) => one.ended === true).map(({ id }) => id);
  };
  await register('stays', { pid: 1 });
  await register('dies', { pid: 2 });
  await register('replaced', { pid: 3 });
  await register('elsewhere', { pid: 2, invoker: 'invoker1' });
  await register('unseen', { pid: 4 });
  await register('without', {});
  expect(await look()).toEqual([]);
  starts.delete(2);
  starts.set(3, 301);
  expect((await look()).sort()).toEqual(['dies', 'replaced']);
});
