import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { DeviceStatus, GpuProcess, Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { workloadTokenHash, workloadTokenVariable } from '@gpuwhisk/common/workload-guard';
import { systemProcesses } from './host/host-processes.js';
import type { ProcessClaims } from './host/host-processes.js';
import { WorkloadAttestation } from './workload-attestation.js';

const registered = (fields: Partial<Workload>): Workload => ({
  ...{ id: 'w', name: 'w', origin: 'started', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0 },
  ...{ namespace: 'alice', guard: { tokenHash: workloadTokenHash('right') }, ...fields },
});

/** The workload that process 7 on device GPU-0 is attested to. */
async function attested(
  workload: Workload,
  claims: ProcessClaims,
  process: Partial<GpuProcess> = {},
): Promise<string | undefined> {
  const state = embeddedState(systemClock);
  await state.setRow(workloadTable, workload.id, { ...workload } as unknown as JsonValue);
  const attestation = new WorkloadAttestation({
    ...{ invoker: 'invoker0', state, logger: createLogger({ level: 'silent' }) },
    processes: { claimsOf: (pid) => Promise.resolve(pid === 7 ? claims : undefined) },
    workloadUsers: { 1000: 'alice', 1001: 'bob' },
  });
  const health = { state: 'healthy' as const, reasons: [] };
  const processes = [{ pid: 7, memoryMiB: 1, ...process }];
  const looks: DeviceStatus[] = [{ uuid: 'GPU-0', at: 1, usedMemoryMiB: 0, health, processes }];
  const [look] = await attestation.attest(looks);
  return look?.processes[0]?.workload;
}

test.each<[string, string | undefined, Partial<Workload>, ProcessClaims, Partial<GpuProcess>?]>([
  ['with the token of the registration is its', 'w', {}, { user: 5, token: 'right' }],
  ['with another token is not', undefined, {}, { user: 5, token: 'wrong' }],
  ['without a token is not', undefined, {}, { user: 5 }],
  ['is not that of a registration without a token', undefined, { guard: {} }, { user: 5, token: 'right' }],
  ['on another device is not', undefined, { device: 'GPU-1' }, { user: 5, token: 'right' }],
  ['of another node is not', undefined, { invoker: 'invoker1' }, { user: 5, token: 'right' }],
  ['in a sandbox is not', undefined, {}, { user: 5, token: 'right' }, { container: 'c1' }],
  ["of the namespace's user, with the registered number, is its", 'w', { guard: {}, pid: 7 }, { user: 1000 }],
  ["of the namespace's user, with another number, is not", undefined, { guard: {}, pid: 8 }, { user: 1000 }],
  ["of another namespace's user is not", undefined, { guard: {}, pid: 7 }, { user: 1001 }],
  ['of a user of no namespace is not', undefined, { guard: {}, pid: 7 }, { user: 0 }],
])('a process %s', async (_, expected, workload, claims, process = {}) => {
  expect(await attested(registered(workload), claims, process)).toBe(expected);
});

test('the token and the user of a process are read from the system', async () => {
  const child = spawn('sleep', ['100'], {
    env: { ...process.env, [workloadTokenVariable]: 'of=mine' },
    stdio: 'ignore',
  });
  try {
    await once(child, 'spawn');
    expect(await systemProcesses.claimsOf(child.pid!)).toEqual({ user: process.getuid?.(), token: 'of=mine' });
    expect(await systemProcesses.claimsOf(process.pid)).toEqual({ user: process.getuid?.() });
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  expect(await systemProcesses.claimsOf(child.pid!)).toBeUndefined();
});
