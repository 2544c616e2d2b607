// Functions with annotation `gpu` on simulated devices.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation } from '../support/api-client.js';
import { compileGpuFunction, devicesOf, fail, processesIn, pythonGpuFunction } from './gpu-functions.js';
import { hasPython } from '../support/machine.js';
import { newDataDir, removeDataDir, startAndFail, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const isHere = hasStandIn() && hasNative();
const onGpus = isHere ? test : test.skip;

/** Processes whose environment or command names the folder. */
function processesOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder);
      } catch {
        return false; // The process ended between the listing and the reading.
      }
    })
    .map(Number);
}

test('models and devices that there are not are refused in one line', async () => {
  const { code, stderr } = await startAndFail({ flags: ['--gpus', isHere ? 'sim:rtx1x2' : 'sim:a100-40'] });
  expect(code).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([expect.stringContaining('--gpus sim:')]);
  const other = await startAndFail({ flags: ['--gpus', 'a100'] });
  expect(other.stderr).toContain('takes auto, none or sim:');
});

test(
  'where no GPU is to be used a function that needs one is accepted, and invoking it says why it cannot run',
  async () => {
    const platform = await startPlatform({ flags: ['--gpus', 'none', '--stem-cells', 'false'] });
    try {
      expect(platform.output()).not.toContain('GPUs: ');
      const annotations = { gpu: { memoryMiB: 100 } };
      await platform.api.putAction('needs', pythonGpuFunction, { kind: 'nodejs:default', annotations });
      const { status, body } = await platform.api.invokeForResult('needs');
      expect(status).toBe(503);
      expect(JSON.stringify(body)).toMatch(/GPU/);
      expect(await devicesOf(platform)).toEqual([]);
    } finally {
      await platform.stop();
    }
  },
  caseMs,
);

describe('functions on one simulated GPU', () => {
  let platform: RunningPlatform;
  let code: Buffer;

  beforeAll(async () => {
    if (!isHere) return;
    code = compileGpuFunction();
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40'] });
  }, caseMs);
  afterAll(async () => {
    if (!isHere) return;
    const { dataDir } = platform;
    await platform.stop();
    expect(processesOf(dataDir)).toEqual([]);
  }, caseMs);

  async function put(name: string, gpu: JsonObject): Promise<void> {
    await platform.api.putAction(name, code, { kind: 'native:1', annotations: { gpu } });
  }

  async function run(name: string, payload: JsonObject = {}): Promise<JsonObject> {
    const { status, body } = await platform.api.invokeForResult(name, payload);
    if (status !== 200) throw new Error(`${name} was answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  onGpus(
    'the start-up says that the GPU is simulated',
    () => expect(platform.output()).toContain('GPUs: 1 x NVIDIA A100-SXM4-40GB (simulated)\n'),
    caseMs,
  );

  onGpus(
    'three with different shares at once take the times that their shares say',
    async () => {
      const shares = { fifty: 50, thirty: 30, twenty: 20 };
      for (const [name, mpsPercent] of Object.entries(shares)) await put(name, { memoryMiB: 2000, mpsPercent });
      const names = Object.keys(shares);
      // The functions' processes exist after these runs, each with its context.
      const first = await Promise.all(names.map((name) => run(name)));
      expect(first.map(({ sms }) => sms)).toEqual([54, 32, 21]);
      const results = await Promise.all(names.map((name) => run(name, { deviceMs: 400 })));
      expect(results.map(({ result }) => result)).toEqual([0, 0, 0]);
      for (const { ms, sms } of results) {
        const modelMs = 400 * (108 / Number(sms));
        expect(Number(ms)).toBeGreaterThan(modelMs * 0.9);
        expect(Number(ms)).toBeLessThan(modelMs * 1.25);
      }
    },
    caseMs,
  );

  onGpus(
    'one gets error 2 beyond its memory, sees one device, and is shown with its share; its record names the device',
    async () => {
      await put('capped', { memoryMiB: 1500, mpsPercent: 70 });
      expect(await run('capped', { allocMiB: 1000 })).toMatchObject({ result: 0, alloc: 0, devices: 1, sms: 75 });
      expect(await run('capped', { allocMiB: 1400 })).toMatchObject({ result: 0, alloc: 2 });
      const capped = async () =>
        (await devicesOf(platform))[0]?.functions.find((one) => one.action === '/guest/capped');
      // The API shows devices as of the last sample.
      await until('it is shown at rest', async () => (await capped())?.running === 0, 30_000);
      expect(await capped()).toMatchObject({ share: 0.7, memoryMiB: 1500 });
      const [device] = await devicesOf(platform);
      const { record } = await platform.api.run('capped');
      expect(annotation(record, 'gpu')).toMatchObject({ device: device?.uuid, simulated: true });
    },
    caseMs,
  );

  onGpus(
    'what one that is killed held is free again',
    async () => {
      await put('killed', { memoryMiB: 1500, mpsPercent: 10 });
      const running = platform.api.run('killed', { allocMiB: 1000, holdMs: 60_000 });
      const holder = async () =>
        (await devicesOf(platform))[0]?.functions.find((one) => one.action === '/guest/killed');
      await until('it runs on the device', async () => ((await holder())?.running ?? 0) === 1, 30_000);
      const { container } = (await holder()) as NonNullable<Awaited<ReturnType<typeof holder>>>;
      const inside = processesIn(container);
      expect(inside.length).toBeGreaterThan(0);
      for (const pid of inside) killIfThere(pid);
      expect((await running).record.response.success).toBe(false);
      await until('it is gone', async () => (await holder())?.container !== container, 30_000);
      expect(await run('killed', { allocMiB: 1000 })).toMatchObject({ result: 0, alloc: 0 });
    },
    caseMs,
  );

  (isHere && hasPython ? test : test.skip)(
    'a Python function has its share, in a process of its own and injected',
    async () => {
      const gpu = { memoryMiB: 1200, mpsPercent: 100 };
      await platform.api.putAction('python', pythonGpuFunction, { kind: 'python:default', annotations: { gpu } });
      const wanted = { codes: [0, 0, 0, 0, 0, 0], devices: 1, totalMiB: 40_960, alloc: 2 };
      expect(await run('python', { allocMiB: 1201 })).toEqual(wanted);
      const isReady = async () =>
        (await devicesOf(platform))[0]?.functions.some((one) => one.action === undefined && one.share === 1);
      await until('one is ready for the next', async () => (await isReady()) === true, 60_000);
      await platform.api.putAction('other', pythonGpuFunction, { kind: 'python:default', annotations: { gpu } });
      const { record } = await platform.api.run('other', { allocMiB: 1201 });
      expect(record.response.result).toEqual(wanted);
      expect(annotation(record, 'start')).toBe('injected');
    },
    caseMs,
  );
});

/** The end of one process of a sandbox can take the others with it. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

describe('a simulated GPU that fails', () => {
  const dataDir = newDataDir();
  const flags = ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false'];
  let platform: RunningPlatform;

  beforeAll(async () => {
    if (!isHere) return;
    platform = await startPlatform({ dataDir, flags });
    const gpu = { memoryMiB: 1500, mpsPercent: 50 };
    await platform.api.putAction('one', compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
  }, caseMs);
  afterAll(async () => {
    if (isHere) await platform.end('SIGKILL');
    removeDataDir(dataDir);
  }, caseMs);

  async function runs(): Promise<void> {
    const { body } = await platform.api.invokeForResult('one', { allocMiB: 100 });
    expect(body).toMatchObject({ result: 0, alloc: 0 });
  }

  /** Begins a long run, and resolves with the index of its device and the run. */
  async function longRun() {
    const running = platform.api.run('one', { holdMs: 50_000 });
    const at = async () =>
      (await devicesOf(platform)).findIndex(({ functions }) => functions.some((one) => one.running));
    await until('it runs on a device', async () => (await at()) >= 0, 30_000);
    return { running, at: await at() };
  }

  onGpus(
    'its MPS daemon killed in mid-run: the run fails and says why, the next ones have a daemon again',
    async () => {
      await runs();
      const { running } = await longRun();
      const daemons = processesOf('nvidia-cuda-mps-control');
      const own = daemons.filter((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8').includes(dataDir));
      expect(own.length).toBeGreaterThan(0);
      for (const pid of own) killIfThere(pid);
      const { record } = await running;
      expect(record.response.success).toBe(false);
      await until('all are well', async () =>
        (await devicesOf(platform)).every(({ health }) => health.state === 'healthy'),
      );
      await until('one runs', async () => (await platform.api.invokeForResult('one')).body.result === 0, 60_000);
      await runs();
    },
    caseMs,
  );

  onGpus(
    'one that is lost: the run ends with a clear error, and the others run on the other device',
    async () => {
      const { running, at } = await longRun();
      fail(platform, at, 'lost');
      const { record } = await running;
      expect(record.response.status).toBe('whisk internal error');
      expect(record.response.result.error).toContain('The GPU that the action ran on was lost');
      await until('it is offline', async () => (await devicesOf(platform))[at]?.health.state === 'offline');
      await runs();
    },
    caseMs,
  );

  onGpus(
    'after the platform was killed its devices are there again, and functions run on them',
    async () => {
      await platform.end('SIGKILL');
      platform = await startPlatform({ dataDir, flags });
      expect((await devicesOf(platform)).map(({ health }) => health.state)).toEqual(['healthy', 'healthy']);
      await runs();
    },
    caseMs,
  );
});
