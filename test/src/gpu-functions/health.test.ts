// The agent's reaction to simulated GPUs that fail, and the operator's displays and actions.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation } from '../support/api-client.js';
import { clientsIn, compileGpuFunction, devicesOf, fail, secretKeeper, standInOf } from './gpu-functions.js';
import { operatorOf } from './gpu-operator.js';
import { otherAuth } from '../support/stem-cells.js';
import { hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const soonMs = 30_000;
const isHere = hasStandIn() && hasNative();
const kind = 'native:1';
const gpu = { memoryMiB: 1500, mpsPercent: 50 };

(isHere ? describe : describe.skip)('simulated GPUs out of order', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x2'] });
    const code = compileGpuFunction();
    for (const name of ['good', 'bad']) await platform.api.putAction(name, code, { kind, annotations: { gpu } });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const { wsk, stateOf, uuidOf, untilState, startWorkload, put } = operatorOf(() => platform);
  const deviceOfRun = async (name: string, payload: JsonObject = {}): Promise<unknown> => {
    const { record } = await platform.api.run(name, payload);
    expect(record.response.result).toMatchObject({ result: 0 });
    return (annotation(record, 'gpu') as JsonObject).device;
  };
  /** Begins a long run, and resolves with the run and the index of its device once the device shows it. */
  async function longRun(name: string): Promise<{ running: ReturnType<typeof platform.api.run>; at: number }> {
    const running = platform.api.run(name, { holdMs: 50_000 });
    const at = async (): Promise<number> =>
      (await devicesOf(platform)).findIndex(({ functions }) => functions.some((one) => one.running > 0));
    await until('it runs on a device', async () => (await at()) >= 0, soonMs);
    return { running, at: await at() };
  }

  (hasPython ? test : test.skip)(
    'memory that a process which has ended holds keeps work off its device until it is free',
    async () => {
      // The first thread ends, and the process seems to have ended; another thread keeps the driver's memory.
      const program = `import ctypes, os, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0)]
codes.append(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
codes.append(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 30)))
threading.Thread(target=time.sleep, args=(100,)).start()
print(os.getpid(), codes, flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
`;
      const { line, ended } = await startWorkload('--device', await uuidOf(0), '--', 'python3', '-c', program);
      expect(line).toMatch(/^\d+ \[0, 0, 0, 0\]$/);
      const pid = Number.parseInt(line, 10);
      expect(pid).toBeGreaterThan(1);
      try {
        await untilState(0, 'cordoned');
        expect((await stateOf(0)).reasons).toEqual(['a process that has ended holds memory of it']);
        expect(await deviceOfRun('good')).toBe(await uuidOf(1));
      } finally {
        process.kill(pid, 'SIGKILL');
      }
      await untilState(0, 'healthy');
      await ended;
    },
    caseMs,
  );

  (hasPython ? test : test.skip)(
    'a function whose process takes more memory than its cap is ended and told so, and its device is free again',
    async () => {
      // The child processes run without the variable of the cap: the server still caps each one, and the agent their
      // sum.
      const child = `import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)]
codes += [cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) for mib in (6000, 1400)]
print(codes, flush=True)
time.sleep(60)
`;
      const code = `import os, subprocess, sys
def main(args):
    env = {name: value for name, value in os.environ.items() if name != "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}
    children = [subprocess.Popen([sys.executable, "-c", ${JSON.stringify(child)}], env=env) for _ in range(5)]
    return {"codes": [child.wait() for child in children]}
`;
      await platform.api.putAction('greedy', code, { kind: 'python:default', annotations: { gpu } });
      const { record } = await platform.api.run('greedy');
      expect(record.logs.join('\n')).toContain('[0, 0, 0, 2, 0]');
      expect(record.response.success).toBe(false);
      expect(JSON.stringify(record.response.result)).toMatch(
        /used \d{4,5} MiB of GPU memory, more than its limit of 1500 MiB, and was aborted/,
      );
      const usedMiB = async () => Math.max(...(await devicesOf(platform)).map((one) => one.usedMemoryMiB));
      await until('its memory is free', async () => (await usedMiB()) < 6000, soonMs);
      const uuid = (annotation(record, 'gpu') as JsonObject).device as string;
      await put(1 - (await devicesOf(platform)).findIndex((one) => one.uuid === uuid), 'cordon');
      expect(await deviceOfRun('good')).toBe(uuid);
      // A new client of MPS, of another user of the machine, beside idle processes.
      const program = `import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0)]
print(codes + [cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)], flush=True)
`;
      const { line, ended } = await startWorkload('--device', uuid, '--', 'python3', '-c', program);
      expect(line).toBe('[0, 0, 0]');
      await ended;
      for (const at of [0, 1]) await put(at, 'uncordon');
      for (const at of [0, 1]) await untilState(at, 'healthy');
    },
    caseMs,
  );

  test(
    'a fault of the hardware drains a device, work goes elsewhere, and an operator puts it to work again',
    async () => {
      const [first, second] = [await uuidOf(0), await uuidOf(1)];
      fail(platform, 0, 'xid', '48');
      await untilState(0, 'draining');
      expect((await stateOf(0)).reasons).toEqual(['Xid 48: uncorrectable memory error']);
      for (let run = 0; run < 3; run++) expect(await deviceOfRun('good')).toBe(second);
      expect((await wsk('gpu', 'devices')).stdout).toMatch(new RegExp(`${first} .* draining `));
      await put(0, 'uncordon');
      await untilState(0, 'healthy');
      await put(1, 'cordon');
      await untilState(1, 'cordoned');
      expect(await deviceOfRun('good')).toBe(first);
      await put(1, 'uncordon');
      await untilState(1, 'healthy');
    },
    caseMs,
  );

  test(
    "a function's fault is told to it; after three it gets no GPU, and others do",
    async () => {
      for (let times = 0; times < 3; times++) {
        const { running, at } = await longRun('bad');
        fail(platform, at, 'client', '31');
        const { record } = await running;
        expect(record.response).toMatchObject({
          status: 'action developer error',
          result: { error: expect.stringContaining('Xid 31: memory page fault') },
        });
        await until('it runs no more', async () =>
          (await devicesOf(platform)).every(({ functions }) => functions.every((one) => one.running === 0)),
        );
      }
      const { status, body } = await platform.api.invokeForResult('bad');
      expect(status).toBeGreaterThanOrEqual(500);
      expect(JSON.stringify(body)).toContain('broke a GPU 3 times within 10 minutes');
      await deviceOfRun('good');
      await until('both GPUs take work', async () =>
        (await devicesOf(platform)).every(({ health }) => health.state === 'healthy'),
      );
    },
    caseMs,
  );

  test(
    'a fault among several runs is recorded as none of theirs, and idempotent ones run again',
    async () => {
      await put(1, 'cordon');
      const plain = { memoryMiB: 1500 }; // Two such functions run side by side from their first call.
      const code = compileGpuFunction();
      await platform.api.putAction('once', code, { kind, annotations: { gpu: plain } });
      await platform.api.putAction('repeats', code, { kind, annotations: { gpu: plain, idempotent: true } });
      const [once, repeats] = ['once', 'repeats'].map((name) => platform.api.run(name, { holdMs: 4000 }));
      const busy = async () => (await devicesOf(platform))[0]!.functions.filter(({ running }) => running > 0).length;
      await until('both run', async () => (await busy()) === 2, soonMs);
      const uuid = await uuidOf(0);
      fail(platform, 0, 'client', '31');
      expect((await once!).record.response).toMatchObject({
        success: false,
        result: {
          error: expect.stringContaining(
            `A function's fault on GPU ${uuid} ended this run: Xid 31: memory page fault.`,
          ),
        },
      });
      expect((await repeats!).record.response).toMatchObject({ success: true, result: { result: 0 } });
      await put(1, 'uncordon');
    },
    caseMs,
  );

  test(
    'a warm process that holds more device memory without a function than before its first one is replaced',
    async () => {
      await put(1, 'cordon');
      const crash = 'const char *gpuwhisk_main(const char *json) { return json + *(volatile int *)0; }';
      await platform.api.putAction('crashes', compileGpuFunction(crash), { kind, annotations: { gpu } });
      const { record } = await platform.api.run('crashes');
      expect(record.response.success).toBe(false);
      // The process was restored, and waits for another function of the namespace.
      const [device] = await devicesOf(platform);
      const { container } = device!.functions.find(({ action }) => action === '/guest/crashes')!;
      const isThere = async () => (await devicesOf(platform))[0]!.functions.some((one) => one.container === container);
      const pids = clientsIn(platform, 0, container);
      expect(pids.length).toBeGreaterThan(0);
      for (const pid of pids) fail(platform, 0, 'leak', '700', String(pid));
      await until('it is replaced', async () => !(await isThere()), soonMs);
      const told = new RegExp(`"${container}".*It held \\d+ MiB of GPU memory without an action, more than \\d+ MiB`);
      expect(platform.output()).toMatch(told);
      expect(await deviceOfRun('good')).toBe(await uuidOf(0));
      await put(1, 'uncordon');
    },
    caseMs,
  );

  test(
    'memory that a function of one namespace wrote and kept is never what another namespace gets',
    async () => {
      await put(1, 'cordon');
      const code = compileGpuFunction(secretKeeper);
      const [guest, other] = [platform.api, platform.api.as(otherAuth)];
      for (const api of [guest, other]) await api.putAction('keeper', code, { kind, annotations: { gpu } });
      for (let round = 0; round < 3; round++) {
        for (const api of [guest, other, other]) {
          const { record } = await api.run('keeper');
          expect(record.response.result).toMatchObject({ result: 0, dirty: 0 });
          expect(annotation(record, 'gpu')).toMatchObject({ device: await uuidOf(0) });
        }
      }
      await put(1, 'uncordon');
    },
    caseMs,
  );

  test(
    'its driver started again in mid-run: the run fails, and the devices serve the next ones',
    async () => {
      const uuids = (await devicesOf(platform)).map(({ uuid }) => uuid);
      const { running } = await longRun('good');
      process.kill(standInOf(platform), 'SIGKILL');
      const { record } = await running;
      expect(record.response.success).toBe(false);
      await until(
        'all are well',
        async () => {
          const shown = await devicesOf(platform);
          return shown.every(({ health, mode }) => health.state === 'healthy' && mode === 'mps');
        },
        soonMs,
      );
      expect((await devicesOf(platform)).map(({ uuid }) => uuid)).toEqual(uuids);
      await until('one runs', async () => (await platform.api.invokeForResult('good')).body.result === 0, 60_000);
      expect(uuids).toContain(await deviceOfRun('good'));
    },
    caseMs,
  );
});
