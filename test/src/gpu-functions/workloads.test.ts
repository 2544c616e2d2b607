// Processes on simulated GPUs that are no functions.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import type { JsonObject } from '@gpuwhisk/common/json';
import { annotation } from '../support/api-client.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';
import type { ShownDevice } from './gpu-functions.js';
import { operatorOf } from './gpu-operator.js';
import { hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const soonMs = 30_000;
const cudaModules = fileURLToPath(new URL('../../../runtimes/cuda', import.meta.url));
const isHere = hasStandIn() && hasNative();

(isHere ? describe : describe.skip)('workloads on simulated GPUs', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x2'] });
    const gpu = { memoryMiB: 1500, mpsPercent: 50 };
    await platform.api.putAction('good', compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const { wsk, uuidOf, untilState: untilDevice, startWorkload, put } = operatorOf(() => platform);
  const deviceOfRun = async (name: string): Promise<unknown> => {
    const { record } = await platform.api.run(name);
    expect(record.response.result).toMatchObject({ result: 0 });
    return (annotation(record, 'gpu') as JsonObject).device;
  };

  (hasPython ? test : test.skip)(
    'a workload and functions, which are of several users of the machine, are on one device side by side',
    async () => {
      await put(1, 'cordon');
      expect(await deviceOfRun('good')).toBe(await uuidOf(0));
      // The process stays warm, and stays a client of MPS.
      const program = `import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)]
print(codes, flush=True)
time.sleep(100)
`;
      const flags = ['--device', await uuidOf(0), '--percent', '50', '--name', 'beside'];
      const { wsk: started, line, ended } = await startWorkload(...flags, '--', 'python3', '-c', program);
      expect(line).toBe('[0, 0, 0]');
      expect(await deviceOfRun('good')).toBe(await uuidOf(0));
      // A function that needs a new process gets the device, too.
      await platform.api.putAction('newcomer', compileGpuFunction(), {
        kind: 'native:1',
        annotations: { gpu: { memoryMiB: 1000, mpsPercent: 20 } },
      });
      expect(await deviceOfRun('newcomer')).toBe(await uuidOf(0));
      started.kill('SIGTERM');
      await ended;
      await put(1, 'uncordon');
    },
    caseMs,
  );

  test(
    'a workload whose wsk was killed stays registered as long as its process runs',
    async () => {
      const {
        wsk: started,
        line,
        ended,
      } = await startWorkload('--name', 'orphan', '--', 'sh', '-c', 'echo $$; exec sleep 100');
      const pid = Number(line);
      expect(pid).toBeGreaterThan(1);
      const listed = async (): Promise<{ name: string; pid?: number; processStart?: number }[]> =>
        JSON.parse(
          JSON.stringify((await platform.api.as(platform.operatorAuth).request('GET', '../gpu/workloads')).body),
        );
      const own = async () => (await listed()).find(({ name }) => name === 'orphan');
      await until('its process is told', async () => (await own())?.pid === pid, soonMs);
      expect((await own())?.processStart).toBeGreaterThan(0);
      started.kill('SIGKILL');
      await ended;
      expect(await own()).toBeDefined();
      process.kill(pid, 'SIGKILL');
      await until('it is forgotten', async () => (await own()) === undefined, soonMs);
    },
    caseMs,
  );

  (hasPython ? test : test.skip)(
    'a process that nobody registered is shown as found, and by its name once it is added; a drained device keeps it',
    async () => {
      const program = `import ctypes, os, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)]
codes.append(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 30)))
print(os.getpid(), codes, flush=True)
time.sleep(100)
`;
      const uuid = await uuidOf(1);
      const flags = ['--device', uuid, '--percent', '20', '--name', 'trainer'];
      const { line, ended } = await startWorkload(...flags, '--', 'python3', '-c', program);
      expect(line).toMatch(/^\d+ \[0, 0, 0, 0\]$/);
      const pid = Number.parseInt(line, 10);
      const row = async () =>
        (await wsk('gpu', 'workload', 'list')).stdout
          .split('\n')
          .map((text) => text.trim().split(/\s+/))
          .find((cells) => cells.includes(String(pid)));
      try {
        await until('it is listed', async () => (await row())?.includes('trainer') === true, soonMs);
        expect(await row()).toEqual(expect.arrayContaining(['trainer', 'started', uuid]));
        expect(await wsk('gpu', 'workload', 'remove', (await row())![0]!)).toMatchObject({ code: 0 });
        await until('it is found', async () => (await row())?.includes('discovered') === true, soonMs);
        const [, seen] = await devicesOf(platform);
        expect(seen!.workloads).toMatchObject([{ pid, origin: 'discovered' }]);
        expect(seen!.usedMemoryMiB).toBeGreaterThan(1024);
        const add = ['--device', uuid, '--pid', String(pid), '--memory', '1500', '--degradation', '0.1'];
        expect(await wsk('gpu', 'workload', 'add', 'known', ...add)).toMatchObject({ code: 0 });
        await until('it has its name', async () => (await row())?.includes('known') === true, soonMs);
        expect(await row()).toEqual(expect.arrayContaining(['registered']));
        expect((await wsk('gpu', 'top', '--once')).stdout).toContain('known (registered)');
        await put(1, 'drain');
        await untilDevice(1, 'draining');
        expect(await deviceOfRun('good')).toBe(await uuidOf(0));
        expect((await row())?.includes('known')).toBe(true);
        await put(1, 'uncordon');
        expect(await wsk('gpu', 'workload', 'remove', (await row())![0]!)).toMatchObject({ code: 0 });
      } finally {
        process.kill(pid, 'SIGKILL');
      }
      await ended;
      await until('it is gone', async () => (await row()) === undefined, soonMs);
    },
    caseMs,
  );

  (hasPython ? test : test.skip)(
    'a training loop reports its rate: its baseline is measured alone, and a function beside it degrades it',
    async () => {
      await put(1, 'cordon');
      const program = `import gpuwhisk_training, sys
sys.path.insert(0, sys.argv[1])
import gpuwhisk_sim
model = gpuwhisk_sim.Model("resnet50")
print("begun", flush=True)
while True:
    model.infer(16)
    gpuwhisk_training.step()
`;
      const flags = ['--device', await uuidOf(0), '--name', 'loop', '--degradation', '0.15'];
      const command = ['python3', '-B', '-c', program, cudaModules];
      const { wsk: started, line, ended } = await startWorkload(...flags, '--', ...command);
      const own = async (): Promise<ShownDevice['workloads'][number] | undefined> =>
        (await devicesOf(platform))[0]!.workloads.find(({ name }) => name === 'loop');
      const untilState = (state: string): Promise<number> =>
        until(`the workload is ${state}`, async () => (await own())?.state === state, soonMs);
      let held = '';
      try {
        expect(line).toBe('begun');
        await untilState('within-bound');
        const alone = await own();
        expect(alone).toMatchObject({ baselineFrom: 'measured', maxDegradation: 0.15 });
        expect(alone!.baselineRate).toBeGreaterThan(5);
        expect(alone!.baselineRate).toBeLessThan(90);
        // It ends within the time that a run has which gives way; the next one waits until the workload is gone.
        const running = platform.api.run('good', { deviceMs: 3000 });
        await untilState('beyond-bound');
        const beside = await own();
        expect(beside!.degradation).toBeCloseTo(1 - beside!.rate! / beside!.baselineRate!);
        expect((await wsk('gpu', 'top', '--once')).stdout).toMatch(
          /loop \(started\) .*\d\* .* 15% {2}process \d+, beyond-bound/,
        );
        expect((await running).record.response.result).toMatchObject({ result: 0 });
        await untilState('within-bound');
        expect((await wsk('gpu', 'workloads')).stdout).toMatch(/ loop .* within-bound/);
        held = await platform.api.submit('good', { deviceMs: 10 });
        await until('the next one waits', async () => (await wsk('gpu', 'queue')).stdout.includes(held));
      } finally {
        started.kill('SIGTERM');
        await ended;
        await put(1, 'uncordon');
      }
      expect(await own()).toBeUndefined();
      expect((await platform.api.record(held)).response.result).toMatchObject({ result: 0 });
    },
    caseMs,
  );
});
