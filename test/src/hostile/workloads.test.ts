// Workloads that a tenant registers, on simulated GPUs under policy `smore`.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileGpuFunction, devicesOf } from '../gpu-functions/gpu-functions.js';
import { wskBinary } from '../cli/wsk-process.js';
import { hasPython } from '../support/machine.js';
import { otherAuth } from '../support/stem-cells.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const soonMs = 30_000;
const isHere = hasStandIn() && hasNative();

interface ShownWorkload {
  id: string;
  name: string;
  attested?: boolean;
}

(isHere ? describe : describe.skip)('workloads of a tenant', () => {
  let platform: RunningPlatform;
  const processes: ChildProcess[] = [];
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x1', '--set', 'gpu.policy=smore'] });
    const gpu = { memoryMiB: 1000, features: { smUtil: 0.3 } };
    await platform.api
      .as(otherAuth)
      .putAction('victim', compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
  }, caseMs);
  afterAll(async () => {
    for (const one of processes) one.kill('SIGKILL');
    await platform.stop();
  }, caseMs);

  const tenant = (method: string, path: string, body?: object) =>
    platform.api.request(method, `../gpu/workloads${path}`, body as never);
  const listed = async (): Promise<ShownWorkload[]> => (await tenant('GET', '')).body as unknown as ShownWorkload[];
  const runVictim = async (): Promise<unknown> =>
    (await platform.api.as(otherAuth).run('victim', { deviceMs: 20 })).record.response.result;

  test(
    'that no process on the device is attested to hold no function off it, whatever they report',
    async () => {
      const [device] = await devicesOf(platform);
      const idle = spawn('sleep', ['1000'], { stdio: 'ignore' });
      processes.push(idle);
      // A process of the tenant that uses no GPU, one of another user, and none.
      for (const pid of [idle.pid, 1, undefined]) {
        const fields = { maxDegradation: 0, baselineRate: 1000, features: { smUtil: 1 } };
        const body = { name: 'blocker', device: device!.uuid, ...(pid !== undefined && { pid }), ...fields };
        const { status, body: added } = await tenant('POST', '', body);
        expect([status, added]).toMatchObject([200, { attested: false }]);
        const { id } = added as unknown as ShownWorkload;
        expect((await tenant('PUT', `/${id}`, { rate: 0.001 })).status).toBe(200);
      }
      expect(await runVictim()).toMatchObject({ result: 0 });
      for (const { id } of await listed()) await tenant('DELETE', `/${id}`);
    },
    caseMs,
  );

  (hasPython ? test : test.skip)(
    'that `wsk gpu workload run` starts are attested once their process uses the device, and no other registration is',
    async () => {
      const program = `import ctypes, os, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
print(os.getpid(), cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device), flush=True)
time.sleep(1000)
`;
      const flags = ['--apihost', platform.url, '--auth', platform.auth];
      const command = ['gpu', 'workload', 'run', '--name', 'own', '--', 'python3', '-c', program];
      const started = spawn(wskBinary, [...flags, ...command], {
        env: { PATH: process.env.PATH, HOME: platform.dataDir },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      processes.push(started);
      const [line] = (await once(started.stdout, 'data')) as [Buffer];
      expect(line.toString()).toMatch(/^\d+ 0 0 0\n$/);
      const [device] = await devicesOf(platform);
      const stolen = { name: 'stolen', device: device!.uuid, pid: Number.parseInt(line.toString(), 10) };
      expect((await tenant('POST', '', stolen)).status).toBe(200);
      const states = async (): Promise<Record<string, boolean | undefined>> =>
        Object.fromEntries((await listed()).map(({ name, attested }) => [name, attested]));
      await until('it is attested', async () => (await states()).own === true, soonMs);
      expect(await states()).toEqual({ own: true, stolen: false });
      started.kill('SIGTERM');
      await once(started, 'exit');
      await until('it is forgotten', async () => !('own' in (await states())), soonMs);
    },
    caseMs,
  );
});
