// A stop by an operator or a power loss while activations run, and the state after the next start.
import { afterEach, expect, test } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { countAll } from '@gpuwhisk/common/store/lmdb-count';
import { openRoot } from '@gpuwhisk/common/store/lmdb-table';
import { logTexts } from '../support/api-client.js';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { alive, descendants, remainingCgroups, sandboxCount } from '../support/process-traces.js';
import {
  newDataDir,
  removeDataDir,
  startAndFail,
  startPlatform,
  stopDuringStart,
  until,
} from '../support/running-platform.js';
import type { PlatformOptions, RunningPlatform } from '../support/running-platform.js';

const sleeper = `async function main({ ms }) {
  console.log('attempt of', process.env.__OW_ACTIVATION_ID);
  await new Promise((done) => setTimeout(done, ms));
  return { slept: ms };
}`;
const containers = 8;
/** Memory for this many containers at once. */
const flags = ['--memory', String(128 * containers), '--stem-cells', 'false'];
const small = { limits: { memory: 128 } };

const running = new Set<RunningPlatform>();
const folders = new Set<string>();

async function start(options: PlatformOptions): Promise<RunningPlatform> {
  const platform = await startPlatform(options);
  running.add(platform);
  folders.add(platform.dataDir);
  return platform;
}

async function end(platform: RunningPlatform, signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
  running.delete(platform);
  return platform.end(signal);
}

afterEach(async () => {
  for (const platform of [...running]) await end(platform, 'SIGTERM');
  for (const folder of folders) removeDataDir(folder);
  folders.clear();
});

const isRunning = (platform: RunningPlatform, count: number) => (): boolean => sandboxCount(platform) >= count;

/** Every record of the action, read by pages. */
async function recordsOf(api: ApiClient, name: string): Promise<ApiActivation[]> {
  const records: ApiActivation[] = [];
  for (;;) {
    const query = `name=${name}&docs=true&limit=200&skip=${records.length}`;
    const { body } = await api.request<ApiActivation[]>('GET', `_/activations?${query}`);
    records.push(...body);
    if (body.length < 200) return records;
  }
}

const submitMany = (api: ApiClient, name: string, count: number, ms: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => api.submit(name, { ms })));

test('nothing accepted is lost, and nothing that had started runs again, when the platform is killed twice', async () => {
  const first = await start({ flags });
  await first.api.putAction('plain', sleeper, small);
  await first.api.putAction('short', sleeper, small);
  await first.api.putAction('again', sleeper, { ...small, annotations: { idempotent: true } });
  const started = await submitMany(first.api, 'plain', 3, 20_000);
  const repeatable = await submitMany(first.api, 'again', 2, 1500);
  await until('five containers run', isRunning(first, 5));
  await new Promise((done) => setTimeout(done, 400));
  const waiting = await submitMany(first.api, 'short', 400, 20);
  await new Promise((done) => setTimeout(done, 200));

  const sandboxes = descendants(first.pid);
  expect(alive(sandboxes).length).toBeGreaterThan(5);
  expect(await end(first, 'SIGKILL')).toBeNull();
  expect(await until('its sandboxes are gone', () => alive(sandboxes).length === 0, 5000)).toBeLessThan(1000);

  const between = await start({ dataDir: first.dataDir, flags });
  expect(remainingCgroups(sandboxes)).toEqual([]);
  await new Promise((done) => setTimeout(done, 300));
  await end(between, 'SIGKILL');
  const second = await start({ dataDir: first.dataDir, flags });
  for (const id of [...started, ...repeatable, ...waiting]) await second.api.record(id, 20_000);

  const stopped = { status: 'whisk internal error', error: 'The invoker stopped while the action ran.' };
  const outcome = ({ response }: ApiActivation): object => ({ status: response.status, ...response.result });
  const [plain, again, short] = await Promise.all(
    ['plain', 'again', 'short'].map((name) => recordsOf(second.api, name)),
  );
  const ids = (records: ApiActivation[] = []): string[] => records.map(({ activationId }) => activationId).sort();
  expect(ids(plain)).toEqual([...started].sort());
  expect(ids(again)).toEqual([...repeatable].sort());
  expect(ids(short)).toEqual([...waiting].sort());
  expect(plain?.map(outcome)).toEqual(started.map(() => stopped));
  expect(again?.map(outcome)).toEqual(repeatable.map(() => ({ status: 'success', slept: 1500 })));
  const cut = short?.filter(({ response }) => !response.success) ?? [];
  expect(cut.map(outcome)).toEqual(cut.map(() => stopped));
  // At most those that ran at the two kills, or had just ended without a record.
  expect(cut.length).toBeLessThanOrEqual(4 * containers);
  for (const record of short ?? []) {
    if (record.response.success) expect(logTexts(record)).toHaveLength(1);
  }
  // What the namespace is said to have stored is what is there.
  const { body } = await second.api.request<{ storedBytes: number }>('GET', '_/limits');
  await end(second, 'SIGKILL');
  const root = openRoot(join(second.dataDir, 'store'));
  const found = countAll(root, () => false)?.all.get('guest');
  await root.close();
  expect(body.storedBytes).toBeGreaterThan(100_000);
  expect(found).toBe(body.storedBytes);
});

test('a signal to stop lets what runs end, and leaves what waits to the next start', async () => {
  const first = await start({ flags: ['--memory', '128', '--stem-cells', 'false'] });
  await first.api.putAction('nap', sleeper, small);
  await first.api.invoke('nap', { ms: 0 });
  const answer = first.api.invoke('nap', { ms: 1000 });
  await new Promise((done) => setTimeout(done, 100));
  const waiting = await submitMany(first.api, 'nap', 5, 10);
  const sandboxes = descendants(first.pid);
  const code = end(first, 'SIGTERM');
  await until('it stops', () => first.output().includes('Stopping'));
  const { status, body } = await answer;
  expect({ status, response: body.response }).toMatchObject({ status: 200, response: { result: { slept: 1000 } } });
  const answeredMs = performance.now();
  expect(await code).toBe(0);
  // The stop does not wait ten seconds for connections that clients keep open.
  expect(performance.now() - answeredMs).toBeLessThan(4000);
  expect(alive(sandboxes)).toEqual([]);
  expect(remainingCgroups(sandboxes)).toEqual([]);
  expect(readdirSync(join(first.dataDir, 'sandboxes')).filter((name) => !name.startsWith('.'))).toEqual([]);

  const second = await start({ dataDir: first.dataDir, flags });
  expect((await second.api.record(body.activationId)).response.result).toEqual({ slept: 1000 });
  for (const id of waiting) {
    expect((await second.api.record(id)).response).toMatchObject({ success: true, result: { slept: 10 } });
  }
  expect(await recordsOf(second.api, 'nap')).toHaveLength(2 + waiting.length);
  await second.stop();
  running.delete(second);
});

test('what outlasts the signal to stop is ended, and recorded by the next start', async () => {
  const first = await start({ flags: [...flags, '--set', 'drainMs=500'] });
  await first.api.putAction('endless', sleeper, small);
  const id = await first.api.submit('endless', { ms: 60_000 });
  await until('it runs', isRunning(first, 1));
  await new Promise((done) => setTimeout(done, 300));
  const beganMs = performance.now();
  expect(await end(first, 'SIGTERM')).toBe(0);
  // Without the setting the stop would take ten seconds.
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  const second = await start({ dataDir: first.dataDir, flags });
  expect((await second.api.record(id)).response).toMatchObject({
    status: 'whisk internal error',
    result: { error: 'The invoker stopped while the action ran.' },
  });
  await second.stop();
  running.delete(second);
});

test('a second server on the same data is refused, and the first goes on', async () => {
  const first = await start({});
  await first.api.putAction('nap', sleeper);
  const refused = await startAndFail({ dataDir: first.dataDir });
  expect(refused).toEqual({
    code: 1,
    stdout: '',
    stderr: `The data folder ${first.dataDir} is in use by process ${first.pid}; choose another with --data.\n`,
  });
  expect((await first.api.invokeForResult('nap', { ms: 1 })).body).toEqual({ slept: 1 });
});

test('Ctrl-C in a terminal, which reaches all processes, and this one twice under npm, lets what runs end', async () => {
  const gpus = hasStandIn() ? 'sim:a100-40' : 'none';
  const platform = await start({ flags: [...flags, '--gpus', gpus], leadsSession: true });
  await platform.api.putAction('nap', sleeper, small);
  await platform.api.invoke('nap', { ms: 0 });
  const answer = platform.api.invokeForResult('nap', { ms: 1000 });
  await new Promise((done) => setTimeout(done, 100));
  running.delete(platform);
  const code = platform.interrupt();
  expect((await answer).body).toEqual({ slept: 1000 });
  expect(await code).toBe(0);
  expect(platform.output()).not.toContain('the simulated GPUs ended');
});

test('a signal during the start stops it in order', async () => {
  const dataDir = newDataDir();
  folders.add(dataDir);
  const { code, stdout, stderr } = await stopDuringStart(dataDir);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('Stopping; running activations have 10 seconds.');
  expect(existsSync(join(dataDir, 'server.lock'))).toBe(false);
});

test('a busy port is one line, and nothing is left', async () => {
  const first = await start({});
  const port = new URL(first.url).port;
  const dataDir = newDataDir();
  folders.add(dataDir);
  const refused = await startAndFail({ dataDir, flags: ['--port', port] });
  expect(refused).toEqual({
    code: 1,
    stdout: '',
    stderr: `Port ${port} of 127.0.0.1 is in use; choose another with --port.\n`,
  });
  expect(readdirSync(dataDir)).not.toContain('server.lock');
  expect(readdirSync(join(dataDir, 'sandboxes')).filter((name) => !name.startsWith('.'))).toEqual([]);
});
