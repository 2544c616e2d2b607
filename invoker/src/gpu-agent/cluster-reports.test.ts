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
    attestation: { isAttested: () => Promise.resolve(false) },
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

test('a registration of a namespace expires ten minutes after its last attested process; one of an operator does not', async () => {
  const state = embeddedState(systemClock);
  let nowMs = 0;
  const attested = new Set(['running', 'stopped']);
  const ended = new EndedWorkloads({
    ...{ invoker: 'invoker0', state, processes: systemProcesses, logger: createLogger({ level: 'silent' }) },
    clock: { ...systemClock, monotonicMs: () => nowMs },
    attestation: { isAttested: ({ id }) => Promise.resolve(attested.has(id)) },
  });
  for (const id of ['running', 'stopped', 'never', 'operators']) {
    const workload: Workload = {
      ...{ id, name: id, origin: 'registered', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0 },
      ...{ namespace: 'guest', guard: id === 'operators' ? { byOperator: true } : {} },
    };
    await state.setRow(workloadTable, id, { ...workload } as unknown as JsonValue);
  }
  const endedAt = async (seconds: number): Promise<string[]> => {
    nowMs = seconds * 1000;
    for (let looks = 0; looks < 5; looks += 1) await ended.look();
    const rows = [...(await state.rows(workloadTable)).values()] as unknown as Workload[];
    return rows.flatMap((one) => (one.ended === true ? [one.id] : [])).sort();
  };
  expect(await endedAt(0)).toEqual([]);
  attested.delete('stopped');
  expect(await endedAt(599)).toEqual([]);
  expect(await endedAt(601)).toEqual(['never', 'stopped']);
});
