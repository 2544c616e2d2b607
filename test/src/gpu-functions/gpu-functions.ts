import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DeviceStatus, GpuProcess, LaunchFigures, Workload } from '@gpuwhisk/common/gpu';
import { standInFolder } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import type { RunningPlatform } from '../support/running-platform.js';

const include = fileURLToPath(new URL('../../../native/cudasim/include', import.meta.url));
const compileTimeoutMs = 60_000;
const requestTimeoutMs = 10_000;

/**
 * A native function that makes a context, allocates `allocMiB`, runs kernels that keep 108 SMs busy for `deviceMs` in
 * all, and holds its memory for `holdMs`. Its result has the driver's numbers, the number of SMs and the device's time.
 * With `others` it also does all but the kernels on the further devices; the result's `others` counts the devices where
 * that succeeded.
 */
const source = `
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static double field(const char *json, const char *name) {
  const char *found = strstr(json, name);
  return found ? atof(strchr(found, ':') + 1) : 0;
}
static CUresult work(double device_ms, float *ms) {
  static const char ptx[] = ".version 7.0\\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=1000000\\n"
                            ".visible .entry work() { ret; }\\n";
  CUmodule module;
  CUfunction function;
  CUevent start, end;
  CUresult result = cuModuleLoadData(&module, ptx);
  if (result == 0) result = cuModuleGetFunction(&function, module, "work");
  if (result == 0) result = cuEventCreate(&start, 0);
  if (result == 0) result = cuEventCreate(&end, 0);
  if (result == 0) result = cuEventRecord(start, NULL);
  for (int i = 0; i < device_ms / 10 && result == 0; i++)
    result = cuLaunchKernel(function, 108 * 8 * 10, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
  if (result == 0) result = cuEventRecord(end, NULL);
  if (result == 0) result = cuEventSynchronize(end);
  if (result == 0) result = cuEventElapsedTime(ms, start, end);
  return result;
}
static int use_others(int count, double mib) {
  int used = 0;
  for (CUdevice device = 1; device < count; device++) {
    CUcontext context;
    CUdeviceptr memory;
    CUresult result = cuDevicePrimaryCtxRetain(&context, device);
    if (result == 0) result = cuCtxSetCurrent(context);
    if (result == 0 && mib > 0) result = cuMemAlloc(&memory, (size_t)mib << 20);
    if (result == 0) used++;
  }
  return used;
}
const char *gpuwhisk_main(const char *json) {
  static char answer[512];
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  int count = 0, sms = 0;
  float ms = 0;
  CUresult result = cuInit(0), alloc = 0;
  if (result == 0) result = cuDeviceGetCount(&count);
  if (result == 0) result = cuDeviceGet(&device, 0);
  if (result == 0) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == 0) result = cuCtxSetCurrent(context);
  if (result == 0) cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  double mib = field(json, "allocMiB");
  if (result == 0 && mib > 0) alloc = cuMemAlloc(&memory, (size_t)mib << 20);
  if (result == 0) result = work(field(json, "deviceMs"), &ms);
  int others = result == 0 && field(json, "others") > 0 ? use_others(count, mib) : 0;
  usleep((useconds_t)(field(json, "holdMs") * 1000));
  if (result == 0) result = cuCtxSynchronize();
  snprintf(answer, sizeof answer, "{\\"result\\":%d,\\"alloc\\":%d,\\"devices\\":%d,\\"sms\\":%d,\\"ms\\":%f,\\"others\\":%d}",
           result, alloc, count, sms, ms, others);
  return answer;
}
`;

/** The same, of kernels that disturb each other: two take much more than twice as long side by side. */
export const disturbingFunction = source.replace('nsPerBlock=1000000', 'nsPerBlock=1000000 sensitivity=2 pressure=2');

/**
 * Allocates 64 MiB, reports in `dirty` how many of its bytes are not zero, overwrites all of it, and never frees it.
 */
export const secretKeeper = `
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
enum { bytes = 64 << 20 };
const char *gpuwhisk_main(const char *json) {
  static char answer[128];
  (void)json;
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  unsigned char *copy = calloc(1, bytes);
  int dirty = 0;
  CUresult result = cuInit(0);
  if (result == 0) result = cuDeviceGet(&device, 0);
  if (result == 0) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == 0) result = cuCtxSetCurrent(context);
  if (result == 0) result = cuMemAlloc(&memory, bytes);
  if (result == 0) result = cuMemcpyDtoH(copy, memory, bytes);
  for (int i = 0; i < bytes; i++) dirty += copy[i] != 0;
  if (result == 0) result = cuMemsetD8(memory, 0x5a, bytes);
  if (result == 0) result = cuCtxSynchronize();
  free(copy);
  snprintf(answer, sizeof answer, "{\\"result\\":%d,\\"dirty\\":%d}", result, dirty);
  return answer;
}
`;

/** A native function, as a shared object that is linked against the stand-in's driver. */
export function compileGpuFunction(code = source): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-gpu-function-'));
  try {
    const object = join(folder, 'function.so');
    const flags = ['-shared', '-fPIC', '-O1', '-Wall', `-I${include}`, '-xc', '-', '-o', object];
    execFileSync('cc', [...flags, `-L${standInFolder}`, '-l:libcuda.so.1'], {
      input: code,
      timeout: compileTimeoutMs,
    });
    return readFileSync(object);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A Python function that asks the driver for its devices and memory through ctypes. */
export const pythonGpuFunction = `import ctypes, os

def main(args):
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    free, total, pointer = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
    codes = [
        cuda.cuInit(0),
        cuda.cuDeviceGetCount(ctypes.byref(count)),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        cuda.cuCtxSetCurrent(context),
        cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)),
    ]
    over = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(args.get("allocMiB", 0) << 20))
    return {"codes": codes, "devices": count.value, "totalMiB": total.value >> 20, "alloc": over}
`;

/** A device as the API shows it to an operator. */
export interface ShownDevice extends Omit<DeviceStatus, 'processes'> {
  functions: {
    container: string;
    action?: string;
    share: number;
    smLimit: number;
    memoryMiB: number;
    running: number;
    launches?: LaunchFigures;
  }[];
  workloads: (GpuProcess & Omit<Workload, 'pid' | 'memoryMiB'> & { degradation?: number; state?: string })[];
  mode: string;
  slices: { uuid: string; profile: string }[];
}

/** The devices of a platform, as an operator sees them. */
export async function devicesOf({ url, operatorAuth }: RunningPlatform): Promise<ShownDevice[]> {
  const authorization = `Basic ${Buffer.from(operatorAuth).toString('base64')}`;
  const signal = AbortSignal.timeout(requestTimeoutMs);
  const response = await fetch(`${url}/api/v1/gpu/devices`, { headers: { authorization }, signal });
  if (response.status !== 200) throw new Error(`GET of the devices was answered ${response.status}`);
  return (await response.json()) as ShownDevice[];
}

const socketOf = ({ dataDir }: RunningPlatform): string => join(dataDir, 'gpus', 'gpus.sock');

/** Process id of a platform's stand-in daemon. */
export function standInOf(platform: RunningPlatform): number {
  const path = socketOf(platform);
  const isIts = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`--socket\0${path}\0`);
    } catch {
      return false; // The process ended between the listing and the reading.
    }
  };
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && isIts(name));
  if (pid === undefined) throw new Error(`No stand-in serves ${path}.`);
  return Number(pid);
}

/** Processes of the host in a sandbox's control groups. */
export function processesIn(container: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
        const isLauncher = readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'sandbox';
        return !isLauncher && groups.some((line) => line.endsWith(`/${container}`));
      } catch {
        return false; // The process ended meanwhile.
      }
    })
    .map(Number);
}

/** The processes of a container that use a device of a platform's stand-in. */
export function clientsIn(platform: RunningPlatform, device: number, container: string): number[] {
  const answer = control(platform, 'status', String(device));
  const { processes } = JSON.parse(answer) as { processes: { pid: number }[] };
  const inside = new Set(processesIn(container));
  return processes.map(({ pid }) => pid).filter((pid) => inside.has(pid));
}

/** Makes a device of a platform's stand-in fail: `client`, `xid NUMBER`, `lost`, `leak MIB PID`. */
export function fail(platform: RunningPlatform, device: number, ...how: string[]): void {
  control(platform, 'fault', String(device), ...how);
}

/**
 * Cuts a device of a platform's stand-in; no process may use it. Returns the uuid of the MIG instance of that profile's
 * number.
 */
export function cut(platform: RunningPlatform, device: number, profile: number): string {
  return control(platform, 'cut', String(device), String(profile)).trim();
}

function control(platform: RunningPlatform, ...words: string[]): string {
  return execFileSync(join(standInFolder, 'control'), words, {
    env: { GPUWHISK_SIM_SOCKET: socketOf(platform) },
    timeout: requestTimeoutMs,
    encoding: 'utf8',
  });
}
