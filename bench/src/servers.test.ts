import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { newCleanup } from './cleanup.js';
import { chooseLoad } from './load/wrk.js';
import { startReference } from './servers.js';

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('the bare server answers the JSON it got, refuses what is none, and ends with the run', async () => {
  const cleanup = newCleanup((line) => {
    throw new Error(line);
  });
  const { url, pid } = await startReference(cleanup);
  const post = (body: string): Promise<Response> => fetch(url, { method: 'POST', body });
  expect(await (await post('{ "a": [1] }')).text()).toBe('{"a":[1]}');
  expect((await post('{')).status).toBe(400);
  expect(isRunning(pid)).toBe(true);
  await cleanup.run();
  expect(isRunning(pid)).toBe(false);
});

test('the load that comes with the clone counts statuses, and keeps bodies', async () => {
  const failures: string[] = [];
  const cleanup = newCleanup((line) => failures.push(line));
  const folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-load-'));
  cleanup.add('folder', () => rm(folder, { recursive: true }));
  try {
    const { url: baseUrl } = await startReference(cleanup);
    const load = await chooseLoad('autocannon', folder, cleanup);
    const request = { baseUrl, headers: {}, connections: 2, seconds: 1, seed: 1 };
    const good = await load.run({ ...request, paths: ['/a', '/b'], body: '{}' });
    expect([...good.statuses.keys()]).toEqual([200]);
    expect(good.failedStatuses + good.socketErrors).toBe(0);
    expect(good.p50Ms).toBeLessThanOrEqual(good.p99Ms);
    const bad = await load.run({ ...request, paths: ['/'], body: '{' });
    expect([...bad.statuses.keys()]).toEqual([400]);
    expect(bad.failedStatuses).toBe(bad.requests);
  } finally {
    await cleanup.run();
  }
  expect(failures).toEqual([]);
});
