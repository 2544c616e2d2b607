// Functions that are injected into processes with a CUDA context, on the stand-in driver.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { nativePrewarmerPath, proxyPath } from '@gpuwhisk/invoker/host/native-programs';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { standIn, startStandIn } from '../gpu/stand-in.js';
import type { StandIn } from '../gpu/stand-in.js';
import { compileObject, injector } from './native-functions.js';
import { proxyLaunch, python } from './python-functions.js';

const headers = fileURLToPath(new URL('../../../native/cudasim/include', import.meta.url));
const MiB = 1024 * 1024;

/** A run's report about the device. The run leaves its memory allocated unless its argument has `free`. */
interface Report {
  hasContext: boolean;
  freeBytes: number;
  /** Whether the allocated memory was all zeros. */
  clean: boolean;
  error: number;
  pid: number;
}

/** `{"free":1}` frees the memory, `{"crash":1}` crashes with the memory allocated. */
const nativeSource = `
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
const char *gpuwhisk_main(const char *json) {
  static char text[256], room[${MiB}];
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  CUstream stream;
  size_t free_bytes = 0, total, zeros = 0;
  int error = cuCtxGetCurrent(&context);
  if (!error) error = cuMemGetInfo(&free_bytes, &total);
  if (!error) error = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (!error) error = cuMemAlloc(&memory, sizeof room);
  if (!error) error = cuMemcpyDtoH(room, memory, sizeof room);
  while (!error && zeros < sizeof room && room[zeros] == 0) zeros++;
  memset(room, 0x5a, sizeof room);
  if (!error) error = cuMemcpyHtoD(memory, room, sizeof room);
  if (!error && strstr(json, "free")) error = cuMemFree(memory);
  if (strstr(json, "crash")) { static int *volatile nowhere; *nowhere = 1; }
  snprintf(text, sizeof text, "{\\"hasContext\\":%s,\\"freeBytes\\":%zu,\\"clean\\":%s,\\"error\\":%d,\\"pid\\":%d}",
           context ? "true" : "false", free_bytes, zeros == sizeof room ? "true" : "false", error, getpid());
  return text;
}`;

const pythonSource = `
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
def main(args):
    context, memory, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    room = ctypes.create_string_buffer(${MiB})
    error = (cuda.cuCtxGetCurrent(ctypes.byref(context)) or cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        or cuda.cuStreamCreate(ctypes.byref(stream), 1) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(${MiB}))
        or cuda.cuMemcpyDtoH_v2(room, memory, ctypes.c_size_t(${MiB})))
    clean = not any(room.raw)
    ctypes.memset(room, 0x5a, ${MiB})
    error = error or cuda.cuMemcpyHtoD_v2(memory, room, ctypes.c_size_t(${MiB}))
    if "free" in args: error = error or cuda.cuMemFree_v2(memory)
    if "crash" in args: ctypes.string_at(0)
    return {"hasContext": bool(context.value), "freeBytes": free.value, "clean": clean, "error": error, "pid": os.getpid()}
`;

const kinds = [
  {
    kind: 'native',
    here: injector !== undefined,
    code: () => compileObject(nativeSource, ['-fPIC', '-shared', `-I${headers}`]),
  },
  { kind: 'python', here: injector !== undefined && python !== undefined, code: () => Buffer.from(pythonSource) },
].filter(({ here }) => here && existsSync(standIn.daemon));

describe.each(kinds)('a $kind pre-warmer with a CUDA context', ({ kind, code }) => {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-cuda-'));
  let device: StandIn;
  let runtime: RuntimeProcess;
  let source: Buffer;

  beforeAll(async () => {
    device = await startStandIn('a100-40', ['--context-ms', '1']);
    source = code();
  });
  afterAll(async () => {
    await device.close();
    rmSync(scratch, { recursive: true, force: true });
  });
  afterEach(() => runtime.close());

  function start(more: Record<string, string> = {}): void {
    const cuda = {
      GPUWHISK_CUDA: 'true',
      GPUWHISK_SIM_SOCKET: device.socket,
      LD_LIBRARY_PATH: standIn.folder,
      GPUWHISK_LIBRARIES: `${standIn.folder}/`,
      ...more,
    };
    const paths = ['--read', standIn.folder, '--write', device.folder];
    const { command, env } =
      kind === 'native' ? { command: [proxyPath, 'native:1', nativePrewarmerPath], env: {} } : proxyLaunch(scratch);
    runtime = new RuntimeProcess({
      command: [...command, ...paths],
      binds: [],
      env: { ...env, ...cuda },
      protocol: 'framed',
    });
  }

  async function load(): Promise<void> {
    const given = kind === 'native' ? { code: source.toString('base64'), binary: true } : { code: source.toString() };
    expect((await runtime.init({ main: 'main', ...given })).body).toEqual({ ok: true });
  }
  const run = async (value: object = {}): Promise<Report> => {
    const answer = await runtime.run(value, { deadline: String(Date.now() + 20_000) });
    expect(answer).toMatchObject({ isError: false });
    return answer.body as Report;
  };
  const unload = async (): Promise<unknown> => (await runtime.unload()).body;
  const unloaded = { ok: true, verifyUs: expect.any(Number) };

  test('each function finds the context, and the device as the first one found it', async () => {
    start();
    const reports: Report[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      await load();
      reports.push(await run());
      expect(await unload()).toEqual(unloaded);
    }
    expect(reports[0]).toMatchObject({ hasContext: true, clean: true, error: 0 });
    for (const report of reports) expect(report).toEqual(reports[0]);
  });

  test('what one function freed on the device is not there for the next', async () => {
    start();
    await load();
    expect(await run({ free: 1 })).toMatchObject({ clean: true, error: 0 });
    expect(await run({ free: 1 })).toMatchObject({ clean: false, error: 0 });
    expect(await unload()).toEqual(unloaded);
    await load();
    expect(await run()).toMatchObject({ clean: true, error: 0 });
  });

  test('a crash is rolled back, on the device too', async () => {
    start();
    await load();
    const before = await run({ free: 1 });
    const crashed = await runtime.run({ crash: 1 }, { deadline: String(Date.now() + 20_000) });
    expect(crashed.isError).toBe(true);
    expect(await run()).toEqual({ ...before, clean: true });
  });

  test('after a fault of the device it is of no more use', async () => {
    start();
    await load();
    await run();
    await device.fault(0, 'client', 31, 0);
    const answer = await runtime.unload();
    expect(answer).toMatchObject({ isError: true, body: { error: expect.stringContaining('device') } });
  });

  test('without a device it serves as any other', async () => {
    start({ CUDA_VISIBLE_DEVICES: '' });
    await load();
    expect(await run()).toMatchObject({ hasContext: false });
    expect(await unload()).toEqual(unloaded);
  });
});

/** A driver that can only make a context: it does not report that its state is in mappings of its own. */
const otherDriver = `
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { static int made; *context = &made; return device; }
int cuCtxSetCurrent(void *context) { return context == 0; }
int answer(void) { return 42; }`;

(injector ? test : test.skip)(
  'with a driver that keeps its state in the process, a pre-warmer serves one function',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-driver-'));
    const command = [proxyPath, 'native:1', nativePrewarmerPath, '--read', folder];
    const env = { GPUWHISK_CUDA: 'true', LD_LIBRARY_PATH: folder, GPUWHISK_LIBRARIES: `${folder}/` };
    writeFileSync(
      join(folder, 'libcuda.so.1'),
      compileObject(otherDriver, ['-fPIC', '-shared', '-Wl,-soname,libcuda.so.1']),
    );
    const runtime = new RuntimeProcess({ command, binds: [], env, protocol: 'framed' });
    try {
      const code = compileObject(`
      #include <stdio.h>
      int answer(void);
      const char *gpuwhisk_main(const char *json) {
        static char text[64];
        static int count;
        snprintf(text, sizeof text, "{\\"answer\\":%d,\\"count\\":%d}", answer(), ++count);
        return text;
      }`);
      const deadline = String(Date.now() + 20_000);
      await runtime.init({ code: code.toString('base64'), binary: true, main: 'main' });
      expect((await runtime.run({}, { deadline })).body).toEqual({ answer: 42, count: 1 });
      expect((await runtime.run({}, { deadline })).body).toEqual({ answer: 42, count: 2 });
      expect(await runtime.unload()).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('driver') },
      });
    } finally {
      await runtime.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
