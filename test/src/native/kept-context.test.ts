// Pairs that keep their CUDA context from function to function by checkpoints of the driver, on the stand-in.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { nativePrewarmerPath, proxyPath } from '@gpuwhisk/invoker/host/native-programs';
import type { InitRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { startMps } from '../gpu/driver-client.js';
import { standIn, startStandIn } from '../gpu/stand-in.js';
import type { StandIn } from '../gpu/stand-in.js';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { compileObject, injector } from './native-functions.js';
import { proxyLaunch, python } from './python-functions.js';

const headers = fileURLToPath(new URL('../../../native/cudasim/include', import.meta.url));
const crashes = 200;

/**
 * `plant` leaves 32 bytes, which no program text has, in device memory, on the heap and in a global; `look` reports where it
 * finds them: in memory that is allocated on the device, or in any mapping of the process. The bytes of `plant` and `look`
 * are equal; neither function holds them but when it is asked to plant.
 */
const nativeSource = `
#define _GNU_SOURCE
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { LENGTH = 32, ROOM = 4 << 20 };
static char planted[LENGTH];
static unsigned char at(size_t i) { return (unsigned char)(0xa5 ^ (i * 37 + 11)); }
static size_t count(const unsigned char *from, size_t bytes) {
  size_t found = 0;
  for (size_t i = 0; i + LENGTH <= bytes; i++) {
    size_t same = 0;
    while (same < LENGTH && from[i + same] == at(same)) same++;
    found += same == LENGTH;
  }
  return found;
}
static void *idle(void *nothing) {
  for (;;) pause();
  return nothing;
}
static size_t count_on_host(void) {
  size_t found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char flags[8];
    if (sscanf(line, "%lx-%lx %7s", &start, &end, flags) != 3 || flags[0] != 'r' || flags[3] == 's') continue;
    if (strstr(line, "[v")) continue;
    found += count((const unsigned char *)start, end - start);
  }
  if (maps) fclose(maps);
  return found;
}
const char *gpuwhisk_main(const char *json) {
  static char text[256];
  static const char work[] = ".version 7.0\\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=600000000000\\n.visible .entry work() { ret; }\\n";
  CUdeviceptr memory = 0;
  pthread_t thread;
  size_t free_bytes = 0, total;
  static int runs;
  CUcontext context = NULL;
  CUmodule module;
  CUfunction function;
  size_t on_device = 0, on_host = 0, nonzero = 0;
  unsigned char *room = malloc(ROOM);
  int error = cuCtxGetCurrent(&context);
  if (!error) error = cuMemGetInfo(&free_bytes, &total);
  if (!error) error = cuMemAlloc(&memory, ROOM);
  if (strstr(json, "thread")) error = pthread_create(&thread, NULL, idle, NULL);
  if (strstr(json, "open")) open("/dev/null", O_RDONLY);
  if (strstr(json, "plant")) {
    for (size_t i = 0; i < ROOM; i++) room[i] = at(i % LENGTH);
    for (size_t i = 0; i < LENGTH; i++) planted[i] = (char)at(i);
    if (!error) error = cuMemcpyHtoD(memory, room, ROOM);
  }
  if (strstr(json, "look")) {
    if (!error) error = cuMemcpyDtoH(room, memory, ROOM);
    on_device = count(room, ROOM);
    for (size_t i = 0; i < ROOM; i++) nonzero += room[i] != 0;
    on_host = count_on_host();
  }
  if (strstr(json, "busy")) {
    if (!error) error = cuModuleLoadData(&module, work);
    if (!error) error = cuModuleGetFunction(&function, module, "work");
    if (!error) error = cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
  }
  if (strstr(json, "crash")) { static int *volatile nowhere; *nowhere = 1; }
  snprintf(text, sizeof text, "{\\"hasContext\\":%s,\\"onDevice\\":%zu,\\"onHost\\":%zu,\\"nonzero\\":%zu,\\"error\\":%d,\\"pid\\":%d,\\"freeBytes\\":%zu,\\"runs\\":%d}",
           context ? "true" : "false", on_device, on_host, nonzero, error, getpid(), free_bytes, ++runs);
  return text;
}`;

const pythonSource = `
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
def main(args):
    memory, context, room = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.create_string_buffer(4096)
    error = cuda.cuCtxGetCurrent(ctypes.byref(context)) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
    error = error or cuda.cuMemcpyDtoH_v2(room, memory, ctypes.c_size_t(4096))
    nonzero = sum(1 for byte in room.raw if byte)
    error = error or cuda.cuMemsetD8_v2(memory, 0x5a, ctypes.c_size_t(4096))
    if "crash" in args: ctypes.string_at(0)
    return {"hasContext": bool(context.value), "nonzero": nonzero, "error": error, "pid": os.getpid()}
`;

type Given = Pick<InitRequest, 'code' | 'binary'>;

const deadline = (): { deadline: string } => ({ deadline: String(Date.now() + 30_000) });

(injector !== undefined && existsSync(standIn.daemon) ? describe : describe.skip)(
  'a context kept by checkpoints',
  () => {
    const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-kept-'));
    let device: StandIn;
    let source: Buffer;
    let runtime: RuntimeProcess;

    beforeAll(async () => {
      device = await startStandIn('h100', ['--context-ms', '1']);
      source = compileObject(nativeSource, ['-fPIC', '-shared', '-O2', `-I${headers}`]);
    });
    afterEach(() => runtime.close());
    afterAll(async () => {
      await device.close();
      rmSync(scratch, { recursive: true, force: true });
    });

    function start(more: Record<string, string> = {}, launch?: { command: readonly string[]; env: object }): void {
      const { command, env } = launch ?? { command: [proxyPath, 'native:1', nativePrewarmerPath], env: {} };
      const cuda = {
        GPUWHISK_CUDA: 'true',
        GPUWHISK_CUDA_KEEP: 'checkpoint',
        GPUWHISK_SIM_SOCKET: device.socket,
        LD_LIBRARY_PATH: standIn.folder,
        GPUWHISK_LIBRARIES: `${standIn.folder}/`,
      };
      runtime = new RuntimeProcess({
        command: [...command, '--read', standIn.folder, '--write', device.folder],
        binds: [],
        env: { ...(env as Record<string, string>), ...cuda, ...more },
        protocol: 'framed',
      });
    }
    const way = async (): Promise<unknown> =>
      (JSON.parse((await runtime.frame(({ type }) => type === 1)).text) as { cuda: string }).cuda;
    const native = (): Given => ({ code: source.toString('base64'), binary: true });
    const load = async (given = native()): Promise<void> => {
      const answer = await runtime.init({ ...given, env: { __OW_NAMESPACE: 'one' } });
      expect(answer.body).toEqual({ ok: true });
    };
    const run = async (value: object): Promise<Record<string, unknown>> => {
      const answer = await runtime.run(value, deadline());
      expect(answer).toMatchObject({ isError: false });
      return answer.body as Record<string, unknown>;
    };

    test('the next function finds nothing of a secret, in device memory or in the host’s', async () => {
      start();
      expect(await way()).toBe('checkpoint');
      await load();
      const planted = await run({ plant: 1 });
      expect(planted).toMatchObject({ hasContext: true, error: 0 });
      // The search finds what is there.
      const own = await run({ plant: 1, look: 1 });
      expect(own['onHost']).toBeGreaterThan(0);
      expect(own['onDevice']).toBeGreaterThan(0);
      expect((await runtime.unload()).body).toMatchObject({ ok: true });
      await load();
      expect(await run({ look: 1 })).toEqual({ ...planted, onDevice: 0, onHost: 0, nonzero: 0 });
    });

    test(`${crashes} crashes do not end the pair`, async () => {
      start();
      await load();
      const { pid } = await run({ look: 1 });
      for (let turn = 0; turn < crashes; turn += 1) {
        const crashed = await runtime.run({ plant: 1, crash: 1 }, deadline());
        expect(crashed.isError).toBe(true);
      }
      expect(await run({ look: 1 })).toMatchObject({
        pid,
        error: 0,
        hasContext: true,
        onDevice: 0,
        onHost: 0,
        nonzero: 0,
      });
    });

    test('a fault of the device ends the pair', async () => {
      start();
      await load();
      await run({});
      await device.fault(0, 'client', 31, 0);
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('driver') },
      });
    });

    test('a kernel that does not end lets the lock time out, and ends the pair', async () => {
      start();
      await load();
      expect(await run({ busy: 1 })).toMatchObject({ error: 0 });
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('error 600') },
      });
    });

    test('under MPS, where the driver refuses, the context is kept another way', async () => {
      const mps = await startMps(device.socket, join(device.folder, 'mps'));
      try {
        start(mps.env);
        expect(await way()).toBe('reset');
        await load();
        const planted = await run({ plant: 1 });
        expect((await runtime.unload()).body).toMatchObject({ ok: true });
        await load();
        expect(await run({ look: 1 })).toEqual({ ...planted, onDevice: 0, onHost: 0, nonzero: 0 });
      } finally {
        await runtime.close();
        await mps.end();
      }
    });

    describe('for functions of one owner', () => {
      const tokens = fileURLToPath(new URL('../../../native/build/tokens/libgpuwhisk-tokens.so', import.meta.url));
      const startForOwner = (): void => start({ GPUWHISK_CUDA_KEEP: 'owner', LD_PRELOAD: tokens });

      test('the next one finds the context, the memory free, and nothing loaded', async () => {
        startForOwner();
        expect(await way()).toBe('owner');
        const reports: Record<string, unknown>[] = [];
        for (let turn = 0; turn < 20; turn += 1) {
          await load();
          reports.push(await run({}));
          expect((await runtime.unload()).body).toMatchObject({ ok: true });
        }
        expect(reports[0]).toMatchObject({ hasContext: true, error: 0, runs: 1 });
        for (const report of reports) expect(report).toEqual(reports[0]);
      });

      test('code of another owner is refused', async () => {
        startForOwner();
        await load();
        await run({});
        expect((await runtime.unload()).body).toMatchObject({ ok: true });
        const refused = await runtime.init({ ...native(), env: { __OW_NAMESPACE: 'two' } });
        expect(refused).toMatchObject({ isError: true, body: { error: expect.stringContaining('another namespace') } });
      });

      test.each([
        ['a thread', { thread: 1 }, 'thread'],
        ['an open file', { open: 1 }, 'descriptors'],
      ])('%s that is left ends the pair', async (_what, argument, reason) => {
        startForOwner();
        await load();
        await run(argument);
        const answer = await runtime.unload();
        expect(answer).toMatchObject({ isError: true, body: { error: expect.stringContaining(reason) } });
      });

      test('a fault of the device, and a crash, end the pair', async () => {
        startForOwner();
        await load();
        await run({});
        await device.fault(0, 'client', 31, 0);
        const answer = await runtime.unload();
        expect(answer).toMatchObject({ isError: true, body: { error: expect.stringContaining('context') } });
        await runtime.close();
        startForOwner();
        await load();
        expect((await runtime.run({ crash: 1 }, deadline())).isError).toBe(true);
        expect(await runtime.exited).toBe(1);
      });
    });

    (python === undefined ? test.skip : test)('Python functions and their crashes, too', async () => {
      start({}, proxyLaunch(scratch));
      expect(await way()).toBe('checkpoint');
      await load({ code: pythonSource, binary: false });
      const first = await run({});
      expect(first).toMatchObject({ hasContext: true, nonzero: 0, error: 0 });
      for (let turn = 0; turn < 10; turn += 1) expect((await runtime.run({ crash: 1 }, deadline())).isError).toBe(true);
      expect(await run({})).toEqual(first);
      expect((await runtime.unload()).body).toMatchObject({ ok: true });
      await load({ code: pythonSource, binary: false });
      expect(await run({})).toEqual(first);
    });
  },
);

/** A driver with a context that has the calls, all of which it refuses, as of a process that it cannot checkpoint. */
const refusingDriver = `
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { static int made; *context = &made; return device; }
int cuCtxSetCurrent(void *context) { return context == 0; }
int cuCheckpointProcessLock(int pid, void *settings) { return 801; }
int cuCheckpointProcessCheckpoint(int pid, void *settings) { return 801; }
int cuCheckpointProcessRestore(int pid, void *settings) { return 801; }
int cuCheckpointProcessUnlock(int pid, void *settings) { return 801; }`;

(injector ? test : test.skip)('a driver that refuses checkpoints is used without them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-refusing-'));
  writeFileSync(
    join(folder, 'libcuda.so.1'),
    compileObject(refusingDriver, ['-fPIC', '-shared', '-Wl,-soname,libcuda.so.1']),
  );
  const runtime = new RuntimeProcess({
    command: [proxyPath, 'native:1', nativePrewarmerPath, '--read', folder],
    binds: [],
    env: { GPUWHISK_CUDA: 'true', GPUWHISK_CUDA_KEEP: 'checkpoint', LD_LIBRARY_PATH: folder },
    protocol: 'framed',
  });
  try {
    const hello = await runtime.frame(({ type }) => type === 1);
    expect(JSON.parse(hello.text)).toMatchObject({ cuda: 'ends' });
    expect(runtime.stderr).toContain('error 801');
  } finally {
    await runtime.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
