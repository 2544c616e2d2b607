// What the cluster runs now, what was on a device, and the processes of the cluster.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, errorOf, operator, startApi } from './harness.js';
import type { Account, Api } from './harness.js';

let api: Api;
beforeAll(async () => {
  api = await startApi({ health: { 'invoker0/0': 'up', 'invoker1/1': 'down' } });
});
afterAll(() => api.close());

type Row = Record<string, unknown>;
const get = async (path: string, as: Account): Promise<unknown> =>
  (await api.request('GET', `/api/v1/${path}`, { as })).json;

/** The sums of all seconds. */
async function sums(as: Account): Promise<Record<string, number>> {
  const seconds = (await get('activity', as)) as ({ id: string; at: number } & Record<string, number>)[];
  const total: Record<string, number> = {};
  for (const { id, at, ...counts } of seconds) {
    expect(at).toBe(Number(id) * 1000);
    for (const [name, value] of Object.entries(counts)) total[name] = (total[name] ?? 0) + value;
  }
  return total;
}

const run = { activationId: 'a'.repeat(32), device: 'GPU-0', at: 5, predictedMs: 40, actualMs: 50 };

test('activations of all processes are counted by second, for each namespace its own', async () => {
  const parts = { state: api.state, clock: systemClock, logger: createLogger({ level: 'silent' }) };
  const [one, two] = [new ActivityReporter(parts), new ActivityReporter(parts)];
  one.ended({ namespace: 'alice', start: 'cold', isFailed: false, sloMs: 100, tookMs: 100 });
  one.ended({ namespace: 'alice', start: 'warm', isFailed: false, sloMs: 100, tookMs: 101 });
  one.ended({ namespace: 'bob', start: 'injected', isFailed: false, tookMs: 5, gpuRun: { ...run, action: '/bob/b' } });
  two.ended({ namespace: 'alice', start: 'warm', isFailed: true, sloMs: 100, tookMs: 1 });
  two.ended({ namespace: 'alice', isFailed: true, tookMs: 1, gpuRun: { ...run, action: '/alice/a' } });
  await until(async () => (await sums(operator)).activations === 5);
  expect(await sums(operator)).toEqual({
    ...{ activations: 5, failed: 2, cold: 1, prewarmed: 0, injected: 1, warm: 2, withSlo: 3, metSlo: 1 },
  });
  expect(await sums(alice)).toMatchObject({ activations: 4, injected: 0, withSlo: 3, metSlo: 1 });
});

test('the history of a device names to a namespace only what is its own', async () => {
  const share = { shareClass: 50 as const, smRequest: 0.3, smLimit: 0.5, memoryMiB: 1024 };
  const resident = { device: 'GPU-0', share, memoryMiB: 1024, activations: [], since: 7 };
  const own = { ...resident, container: 'one', namespace: 'alice', action: '/alice/a' };
  const foreign = { ...resident, container: 'two', namespace: 'bob', action: '/bob/b' };
  await setNode(api.state, nodeRow([a100('GPU-0')], [own, foreign]));
  const seen = (await get('gpu/devices/GPU-0/history', alice)) as Record<string, Row[]>;
  expect(seen).toMatchObject({ samples: [{ usedMemoryMiB: 0, utilisation: 0.25 }], runs: [{ action: '/alice/a' }] });
  expect(seen.instances).toEqual([
    { container: 'one', namespace: 'alice', action: '/alice/a', memoryMiB: 1024, smLimit: 0.5, from: 7 },
    { memoryMiB: 1024, smLimit: 0.5, from: 7 },
  ]);
  // Rows are looked at once a second.
  await until(async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')], [own]));
    const { instances = [] } = (await get('gpu/devices/GPU-0/history', operator)) as Record<string, Row[]>;
    return instances[1]?.container === 'two' && typeof instances[1].until === 'number';
  });
  expect((await api.request('GET', '/api/v1/gpu/devices/GPU-9/history')).status).toBe(404);
});

test('operators see the processes of the cluster', async () => {
  await api.state.acquireLease('gpu-scheduler', 'controller0', 60_000);
  expect(await get('admin/members', operator)).toEqual([
    { id: 'controller0', sort: 'controller', state: 'up', decides: true, answers: true },
    { id: 'invoker0/0', sort: 'invoker', state: 'up' },
    { id: 'invoker1/1', sort: 'invoker', state: 'down' },
  ]);
  const refused = await api.request('GET', '/api/v1/admin/members', { as: alice });
  expect([refused.status, errorOf(refused)]).toEqual([403, expect.any(String)]);
});

test('a caller learns what its key may see', async () => {
  expect(await get('viewer', alice)).toEqual({ namespace: 'alice', isOperator: false });
  expect(await get('viewer', operator)).toEqual({ namespace: 'operator', isOperator: true });
  expect((await api.request('GET', '/api/v1/viewer', { as: null })).status).toBe(401);
});
