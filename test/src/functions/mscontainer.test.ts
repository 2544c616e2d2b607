// Functions that are injected into processes which were ready before the upload, and their isolation.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { annotation } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { intruder } from './intruder-functions.js';
import { hasPython, isolationLack } from '../support/machine.js';
import { pidJar, pidSources } from './pid-functions.js';
import { secretFunction } from './secret-functions.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { manifestWithStemCells, otherAuth, prewarmersOf } from '../support/stem-cells.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = newDataDir();
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const java = catalog.manifest.runtimes.java?.[0]?.kind;
const canInjectPython = hasPython && hasPythonPairs();
const families = [
  'nodejs',
  ...(canInjectPython ? ['python'] : []),
  ...(hasNative() ? ['native'] : []),
  ...(java === undefined ? [] : ['java']),
];
/** Java's runtime is compiled first. */
const readyMs = 180_000;

let platform: RunningPlatform;
const manifest = manifestWithStemCells(join(dataDir, '..'), families);

async function listed(family: string): Promise<Prewarmer[]> {
  return (await prewarmersOf(platform)).filter(({ kind }) => kind.startsWith(`${family}:`));
}

beforeAll(async () => {
  platform = await startPlatform({ dataDir, flags: ['--runtimes', manifest] });
}, readyMs);
afterAll(async () => {
  expect(await platform.end('SIGTERM')).toBe(0);
  removeDataDir(dataDir);
});

const launchOf = (family: string): Promise<RuntimeLaunch> =>
  catalog.launch(catalog.manifest.runtimes[family]?.[0]?.kind ?? '', []);

async function code(family: string): Promise<{ code: string | Buffer; main?: string }> {
  if (family !== 'java') return { code: pidSources[family as keyof typeof pidSources] };
  return { code: pidJar(await launchOf('java')), main: 'Pid' };
}

test.each(families)(
  'a function of %s runs in a process that was listed before its upload',
  async (family) => {
    const { code: source, main } = await code(family);
    await until('one is ready', async () => (await listed(family)).length > 0, readyMs);
    const before = await listed(family);
    for (const { since } of before) expect(since).toBeLessThanOrEqual(Date.now());
    const options = { kind: `${family}:default`, ...(main !== undefined && { main }) };
    await platform.api.putAction(`pid-${family}`, source, options);
    const { status, record } = await platform.api.run(`pid-${family}`);
    expect({ status, response: record.response }).toMatchObject({ status: 200, response: { success: true } });
    expect(before.map(({ pid }) => pid)).toContain(record.response.result.pid);
    expect(annotation(record, 'start')).toBe('injected');
  },
  readyMs,
);

(isolationLack === undefined ? test : test.skip)(
  'those that are ready lie in an MSContainer, each with its id',
  async () => {
    await until('all are ready', async () => (await prewarmersOf(platform)).length >= families.length, readyMs);
    const all = await prewarmersOf(platform);
    expect(new Set(all.map(({ msContainer }) => msContainer)).size).toBe(1);
    expect(all[0]?.msContainer).toMatch(/^[0-9a-f]{8}$/);
    expect(new Set(all.map(({ pid }) => pid)).size).toBe(all.length);
  },
  readyMs,
);

(isolationLack === undefined ? test : test.skip)(
  'when the holder is killed others are made ready',
  async () => {
    const before = await prewarmersOf(platform);
    const holder = readdirSync('/proc').find((pid) => {
      try {
        const [, , flag] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return flag === '--hold' && new RegExp(`^PPid:\\s+${platform.pid}$`, 'm').test(status);
      } catch {
        return false; // The entry is no process, or the process ended meanwhile.
      }
    });
    process.kill(Number(holder), 'SIGKILL');
    const gone = new Set(before.map(({ container }) => container));
    await until(
      'others are ready',
      async () => {
        const now = await prewarmersOf(platform);
        return now.length >= families.length && now.every(({ container }) => !gone.has(container));
      },
      readyMs,
    );
    await platform.api.putAction('after', pidSources.nodejs);
    expect((await platform.api.invokeForResult('after')).status).toBe(200);
  },
  readyMs,
);

(isolationLack === undefined ? test : test.skip).each(families)(
  'a function of %s sees and reaches no process of another pair, nor its own proxy',
  async (family) => {
    await until('all are ready', async () => (await prewarmersOf(platform)).length >= families.length, readyMs);
    const pids = (await prewarmersOf(platform)).map(({ pid }) => pid ?? 0);
    const { code: source, main } = intruder(family, await launchOf(family));
    const options = { kind: `${family}:default`, ...(main !== undefined && { main }) };
    await platform.api.putAction(`intruder-${family}`, source, options);
    const { record } = await platform.api.run(`intruder-${family}`, { pids });
    expect(record.response).toMatchObject({ success: true });
    expect(annotation(record, 'start')).toBe('injected');
    const { pid, codes, seen } = record.response.result as { pid: number; codes: string[]; seen: number[] };
    expect(pids).toContain(pid);
    // Native functions cannot even list other processes.
    expect(seen.filter((one) => one !== pid)).toEqual([]);
    expect(codes.length).toBeGreaterThan(families.length);
    for (const code of codes) expect(code).toMatch(/^(EPERM|EACCES|ESRCH|ENOENT|EFAULT)$/);
    // The attacked processes still run.
    const after = (await prewarmersOf(platform)).map((one) => one.pid);
    expect(after).toEqual(expect.arrayContaining(pids.filter((one) => one !== pid)));
  },
  readyMs,
);

test.each(families)(
  'what a function of %s leaves in one namespace is not found from another one',
  async (family) => {
    const other = platform.api.as(otherAuth);
    const kind = `${family}:default`;
    const { code: source, main } = secretFunction(family, await launchOf(family));
    const options = { kind, ...(main !== undefined && { main }) };
    // Processes outside MSContainers have ids of their own PID namespaces.
    const injectedInto = ({ annotations, response }: ApiActivation): unknown =>
      annotation({ annotations }, 'start') === 'injected' ? response.result.pid : undefined;
    const halves = { first: 'x7Qp-secret-of-', second: `${family}-9Zt` };
    const used = new Set<unknown>();
    for (let i = 0; i < 2; i++) {
      await until('one is ready', async () => (await listed(family)).length > 0, readyMs);
      await platform.api.putAction(`plant-${family}-${i}`, source, options);
      const { record } = await platform.api.run(`plant-${family}-${i}`, { ...halves, plant: true });
      expect(record.response).toMatchObject({ success: true });
      expect(record.response.result.found).toBeGreaterThan(0);
      expect(record.response.result.named).toBeGreaterThan(3);
      used.add(injectedInto(record));
    }
    used.delete(undefined);
    expect(used.size).toBeGreaterThan(0);
    for (let i = 0; i < 2; i++) {
      await until('one is ready', async () => (await listed(family)).length > 0, readyMs);
      await other.putAction(`hunt-${family}-${i}`, source, options);
      const { record } = await other.run(`hunt-${family}-${i}`, halves);
      expect(record.response.result).toMatchObject({ found: 0, named: 0 });
      expect(record.response.result.mappings).toBeGreaterThan(20);
      expect(used).not.toContain(injectedInto(record));
    }
  },
  readyMs,
);

test(
  '--containers process starts functions in processes of their own',
  async () => {
    const plain = await startPlatform({ flags: ['--containers', 'process'] });
    try {
      await until('some are ready', async () => (await prewarmersOf(plain)).length > 0, 20_000);
      expect((await prewarmersOf(plain)).filter(({ msContainer }) => msContainer !== undefined)).toEqual([]);
      await plain.api.putAction('pid', pidSources.nodejs);
      const { record } = await plain.api.run('pid');
      expect(annotation(record, 'start')).toMatch(/^(cold|prewarmed)$/);
    } finally {
      await plain.stop();
    }
  },
  readyMs,
);
