// Activations that wait for a simulated GPU: their order, and their state after a power loss.
import { afterEach, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { isJsonObject } from '@gpuwhisk/common/json';
import { annotation } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false'];
const sleeper = `async function main({ ms }) {
  await new Promise((done) => setTimeout(done, ms));
  return { device: process.env.CUDA_VISIBLE_DEVICES };
}`;
/** The device has memory for one such function at a time. */
const gpu = { memoryMiB: 30_000, mpsPercent: 50 };

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: what waits for one is not tested.');

(hasStandIn() ? describe : describe.skip)('activations that wait for a GPU', () => {
  const folders = new Set<string>();
  let platform: RunningPlatform | undefined;

  async function start(dataDir?: string): Promise<RunningPlatform> {
    platform = await startPlatform({ flags, ...(dataDir !== undefined && { dataDir }) });
    folders.add(platform.dataDir);
    return platform;
  }

  afterEach(async () => {
    await platform?.end('SIGTERM');
    platform = undefined;
    for (const folder of folders) removeDataDir(folder);
    folders.clear();
  });

  /** Activations that run on the device, as the API tells. */
  async function running({ api }: RunningPlatform): Promise<number> {
    const { body } = await api.request<{ functions: { running: number }[] }[]>('GET', '../gpu/devices');
    return body.flatMap(({ functions }) => functions).reduce((sum, one) => sum + one.running, 0);
  }

  const gpuOf = (record: ApiActivation): unknown => annotation(record, 'gpu');

  test('run one after the other, each on the device that its record names', async () => {
    const { api } = await start();
    await api.putAction('large', sleeper, { annotations: { gpu } });
    const ids = [await api.submit('large', { ms: 50 }), await api.submit('large', { ms: 50 })];
    const answer = await api.invoke('large', { ms: 50 });
    expect(answer.status).toBe(200);
    const records = await Promise.all([...ids, answer.activationId].map((id) => api.record(id)));
    for (const record of records) {
      expect(record.response.success).toBe(true);
      const { device } = record.response.result;
      expect(gpuOf(record)).toMatchObject({ device, share: 0.5, simulated: true });
    }
    const byStart = [...records].sort((one, other) => one.start - other.start);
    byStart.slice(1).forEach((record, at) => expect(record.start).toBeGreaterThanOrEqual(byStart[at]?.end ?? 0));
  });

  test('survive a kill of the server: each has one end, and what had not begun runs', async () => {
    const first = await start();
    await first.api.putAction('large', sleeper, { annotations: { gpu } });
    const begun = await first.api.submit('large', { ms: 60_000 });
    await until('it runs', async () => (await running(first)) === 1, 30_000);
    const waiting: string[] = [];
    for (let count = 0; count < 3; count++) waiting.push(await first.api.submit('large', { ms: 10 }));
    await first.end('SIGKILL');
    const { api } = await start(first.dataDir);
    const stopped = await api.record(begun, 60_000);
    expect(stopped.response.result).toEqual({ error: 'The invoker stopped while the action ran.' });
    for (const id of waiting) {
      const record = await api.record(id, 60_000);
      expect([record.response.status, isJsonObject(gpuOf(record) as never)]).toEqual(['success', true]);
    }
    const { body } = await api.request<unknown[]>('GET', '_/activations?name=large');
    expect(body).toHaveLength(4);
  });

  test('are none where no device could ever serve them: they are answered with the reason', async () => {
    const { api } = await start();
    const refused = await api.request('PUT', '_/actions/huge', {
      exec: { kind: 'nodejs:default', code: sleeper },
      annotations: [{ key: 'gpu', value: { memoryMiB: 50_000 } }],
    });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toContain("'memoryMiB' is 50000, and the largest device");
  });
});
