// A function that faults beside others under MPS on one simulated GPU: who is told what, and who runs alone afterwards.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk } from '../cli/wsk-process.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';

const caseMs = 180_000;
const soonMs = 30_000;
const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false'];
const isHere = hasStandIn() && hasNative();
if (!isHere) console.info('No stand-in for a GPU is built here: faults under MPS are not tested on a platform.');

/** Makes a context, waits for `waitMs`, runs a kernel that ends in an illegal address, and waits for its end. */
const breaker = `
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
const char *gpuwhisk_main(const char *json) {
  static const char ptx[] = ".version 7.0\\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=1000 faults=1\\n"
                            ".visible .entry work() { ret; }\\n";
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  const char *found = strstr(json, "waitMs");
  CUresult result = cuInit(0);
  if (result == 0) result = cuDeviceGet(&device, 0);
  if (result == 0) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == 0) result = cuCtxSetCurrent(context);
  if (result == 0) result = cuModuleLoadData(&module, ptx);
  if (result == 0) result = cuModuleGetFunction(&function, module, "work");
  usleep(1000 * (useconds_t)(found ? atof(strchr(found, ':') + 1) : 0));
  if (result == 0) cuLaunchKernel(function, 108, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
  cuCtxSynchronize();
  sleep(10);
  return "{\\"result\\":0}";
}
`;

(isHere ? describe : describe.skip)('a function that faults beside others under MPS', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags });
    const good = compileGpuFunction();
    const put = (name: string, code: Buffer, more: JsonObject = {}): Promise<unknown> =>
      platform.api.putAction(name, code, { kind: 'native:1', annotations: { gpu: { memoryMiB: 1500 }, ...more } });
    await put('once', good);
    await put('repeats', good, { idempotent: true });
    await put('breaks', compileGpuFunction(breaker));
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const wsk = async (...args: string[]): Promise<string> => {
    const options = ['--apihost', platform.url, '--auth', platform.auth];
    return (await runWsk([...options, 'gpu', ...args], { directory: platform.dataDir })).stdout;
  };
  const busy = async (): Promise<(string | undefined)[]> =>
    (await devicesOf(platform)).flatMap(({ functions }) =>
      functions.flatMap(({ running, action }) => (running > 0 ? [action] : [])),
    );
  /** Runs `victim` while `breaks` faults beside it; the records of both. */
  const faultBeside = async (victim: string) => {
    const held = platform.api.run(victim, { deviceMs: 10, holdMs: 5000 });
    await until('the victim runs', async () => (await busy()).includes(`/guest/${victim}`), soonMs);
    const broken = platform.api.run('breaks', { waitMs: 1500 });
    await until('both run', async () => (await busy()).length === 2, soonMs);
    return { victim: (await held).record, broken: (await broken).record };
  };

  test(
    'an innocent run is told so and repeated if it may be; then both run alone, until the faulting one is known',
    async () => {
      const first = await faultBeside('repeats');
      expect(first.victim.response).toMatchObject({ success: true, result: { result: 0 } });
      const { error } = first.broken.response.result as { error: string };
      expect(error).toMatch(/^A function's fault on GPU GPU-\S+ ended this run: .*isolation.*exclusive.*MIG slice/);
      expect(error).not.toContain('/guest/');
      await until('both run alone', async () => {
        const told = await wsk('functions');
        return ['repeats', 'breaks'].every((name) =>
          told.includes(`/guest/${name} 0.0.1 runs alone until five runs have succeeded`),
        );
      });
      // They do not meet again: the second waits for the end of the first.
      const [held, broken] = [
        platform.api.run('repeats', { deviceMs: 10, holdMs: 3000 }),
        platform.api.run('breaks', { waitMs: 100 }),
      ];
      const [victim, guilty] = [(await held).record, (await broken).record];
      expect(victim.response).toMatchObject({ success: true, result: { result: 0 } });
      expect(JSON.stringify(guilty.response.result)).toContain('reported an error while the action ran');
      expect(Math.max(victim.start, guilty.start)).toBeGreaterThanOrEqual(Math.min(victim.end, guilty.end));
      await until('the faulting one is known', async () =>
        /\/guest\/breaks 0\.0\.1 runs alone until \d{4}-\d\d-\d\dT\d\d:\d\dZ: a fault of it ended/.test(
          await wsk('functions'),
        ),
      );
      expect(await wsk('explain', guilty.activationId)).toMatch(/; alone until .*: it was one of several/);
      for (let run = 0; run < 5; run += 1) await platform.api.run('repeats', { deviceMs: 10, holdMs: 20 });
      await until(
        'the innocent one is cleared',
        async () => !(await wsk('functions')).includes('/guest/repeats 0.0.1 runs'),
      );
    },
    caseMs,
  );

  test(
    'a restart does not forget who faults, and others share the GPU meanwhile',
    async () => {
      const { dataDir } = platform;
      await platform.end('SIGTERM');
      platform = await startPlatform({ flags, dataDir });
      expect(await wsk('functions')).toContain('/guest/breaks 0.0.1 runs alone until');
      const runs = ['once', 'repeats'].map((name) => platform.api.run(name, { deviceMs: 10, holdMs: 4000 }));
      await until('two share', async () => (await busy()).length === 2, soonMs);
      for (const run of runs) expect((await run).record.response).toMatchObject({ success: true });
      const forgotten = await runWsk(
        ['--apihost', platform.url, '--auth', platform.operatorAuth, 'gpu', 'functions', '--forget', '/guest/breaks'],
        { directory: platform.dataDir },
      );
      expect(forgotten.code).toBe(0);
      expect(await wsk('functions')).not.toContain('/guest/breaks');
    },
    caseMs,
  );
});
