// An upgrade of a packaged server under load, as the service's restart does it, and the way back.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiClient } from '../support/api-client.js';
import { until } from '../support/running-platform.js';
import { openLoop } from './open-loop.js';
import { openSockets } from './passed-sockets.js';
import type { PassedSockets } from './passed-sockets.js';

const layout = new URL('../../../scripts/release/layout.mjs', import.meta.url).href;
const versions = ['0.1.0', '0.1.1'] as const;
/** Answers pause for a restart only: for 2 s at most on two cores of their own, and for longer where other suites have them, s. */
const longestPauseS = 10;
/** The longest wait of a request, which may need a container after the pause, ms. */
const longestWaitMs = 15_000;
const ratePerS = 60;

let folder: string;
let sockets: PassedSockets;
/** The server that runs; a test that has failed leaves it. */
let running: number | undefined;
const at = (...path: string[]): string => join(folder, ...path);

/** Lays out both releases in a process of its own: the scripts are no part of the build. */
function layOut(): void {
  const each = versions.map(
    (version) => `await layOutRelease('${at(version)}', { site: false, version: '${version}' });`,
  );
  const script = `import { layOutRelease } from '${layout}'; ${each.join(' ')}`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 100_000,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  if (status !== 0) throw new Error(`no release: ${stderr}`);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-upgrade-'));
  layOut();
  mkdirSync(at('data'), { mode: 0o700 });
  // A real release has code of its own: it finds none that the release before has compiled.
  for (const version of versions) mkdirSync(at(`cache-${version}`), { mode: 0o700 });
  sockets = await openSockets();
});
afterAll(() => {
  if (running !== undefined) process.kill(running, 'SIGKILL');
  sockets?.close();
  rmSync(folder, { recursive: true, force: true });
});

const origin = (): string => `http://127.0.0.1:${sockets.ports[0]}`;

async function start(version: string): Promise<number> {
  const [port = 0, gateway = 0, site = 0] = sockets.ports;
  const flags = ['--port', port, '--gateway-port', gateway, '--console-port', site, '--data', at('data')];
  const command = [process.execPath, at(version, 'bin', 'gpuwhisk'), 'serve', ...flags.map(String)];
  const environment = [`CACHE_DIRECTORY=${at(`cache-${version}`)}`, 'GPUWHISK_PREPARE_RUNTIMES=false', 'NODE_OPTIONS='];
  running = await sockets.start(['env', ...environment, ...command], at(`${version}.log`));
  return running;
}

const logOf = (version: string): string => readFileSync(at(`${version}.log`), 'utf8');

/** The record of the activation that an answer names, if the answer names one. */
async function recordIn(api: ApiClient, answer: string): Promise<string> {
  const [, id] = /"activationId":"(\w+)"/.exec(answer) ?? [];
  if (id === undefined) return '';
  const { body } = await api.request('GET', `_/activations/${id}`);
  return `upgrade: the record of ${id}: ${JSON.stringify(body)}\n`;
}

async function versionThatServes(): Promise<string> {
  const answer = await fetch(`${origin()}/api/v1`, { signal: AbortSignal.timeout(30_000) });
  return ((await answer.json()) as { buildno?: string }).buildno ?? '';
}

async function stop(pid: number): Promise<void> {
  process.kill(pid, 'SIGTERM');
  expect(await sockets.ended(pid)).toBe(0);
  running = undefined;
}

test('an upgrade and the way back lose no call and no write, and none waits for longer than the restart', async () => {
  let pid = await start(versions[0]);
  await until('it serves', async () => (await versionThatServes()) === versions[0], 60_000);
  await until('it has printed the key', () => logOf(versions[0]).includes('Ctrl-C stops'));
  const [, auth = ''] = /--auth (\S+)/.exec(logOf(versions[0])) ?? [];
  const api = new ApiClient(origin(), auth);
  await api.putAction('called', 'exports.main = () => ({ done: true })');
  await api.invoke('called', {});
  const load = openLoop(origin(), auth, 'called', ratePerS);
  await new Promise((done) => setTimeout(done, 3000));
  const steps: string[] = [];
  for (const version of [versions[1], versions[0]]) {
    const beganMs = performance.now();
    await stop(pid);
    const stoppedMs = performance.now();
    pid = await start(version);
    await until(`${version} serves`, async () => (await versionThatServes()) === version, 60_000);
    const servesMs = performance.now();
    steps.push(`${version}: stop ${Math.round(stoppedMs - beganMs)} ms, start ${Math.round(servesMs - stoppedMs)} ms`);
    await new Promise((done) => setTimeout(done, 3000));
  }
  const report = await load.stop();
  process.stderr.write(
    `upgrade: ${report.sent} requests, ${report.failed.length} failed, ${report.withIds} blocking calls answered with their ids, ${report.repeated} sent again, longest pause between answers ${report.longestPauseS.toFixed(2)} s, longest wait ${report.longest}; ${steps.join('; ')}\n`,
  );
  for (const told of report.failed) process.stderr.write(`upgrade: failed: ${told}\n${await recordIn(api, told)}`);
  if (report.failed.length > 0) for (const version of versions) process.stderr.write(logOf(version));
  expect(report.failed).toEqual([]);
  for (const id of report.accepted) expect((await api.record(id)).response.success).toBe(true);
  for (const name of report.written)
    expect((await api.request('GET', `_/actions/${name}?code=false`)).status).toBe(200);
  expect(report.accepted.length + report.written.length).toBeGreaterThan(report.sent / 2);
  // Those that came as a server stopped, a second's requests at most.
  expect(report.withIds).toBeLessThan(ratePerS);
  expect(report.longestPauseS).toBeLessThan(longestPauseS);
  expect(report.longestMs).toBeLessThan(longestWaitMs);
  await stop(pid);
});
